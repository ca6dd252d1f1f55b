"""What centers sell: rooms and services, and the rates that they cost."""

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils.functional import cached_property

from centers import rates
from centers.models.catalog import ResourceType, UniqueNameMixin
from centers.models.center import Center
from centers.models.terms import Terms
from centers.querysets import MeetingRoomQuerySet
from roombook import images
from roombook.money import MoneyField
from roombook.texts import LineField, ParagraphsField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from centers.models.price_list import PriceList


class Rate(UniqueNameMixin):
    """The prices of rooms or services. An empty price is not offered; 0 is free."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="rates")
    name = LineField(max_length=255, help_text="Only staff see the name.")
    is_flat_rate = models.BooleanField("flat rate", default=False)
    flat_rate = MoneyField("flat price", null=True, blank=True)
    hourly = MoneyField("per hour", null=True, blank=True)
    half_day = MoneyField("per half day", null=True, blank=True, help_text="Up to 4 hours.")
    full_day = MoneyField("per day", null=True, blank=True)
    setup_fee = MoneyField("set-up fee", null=True, blank=True)
    bill_in_blocks = models.BooleanField(
        "round up to full hours",
        default=False,
        help_text="Otherwise bookings are rounded up to the next quarter of an hour.",
    )
    description = LineField(
        max_length=255, blank=True, help_text="Shown to customers. Leave empty to list the prices."
    )

    # Whether it has rows of PriceList, which sets it.
    has_special_prices = models.BooleanField(default=False, editable=False)

    name_scope = ("center_id",)

    class Meta:
        constraints = [
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 0}),
                    name=f"rate_{name}_is_not_negative",
                    violation_error_message="A price must not be negative.",
                )
                for name in ("flat_rate", "hourly", "half_day", "full_day", "setup_fee")
            ),
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="rate_name_unique_in_center",
                violation_error_message="This center already has a rate with this name.",
            ),
        ]

    def __str__(self) -> str:
        prices = rates.describe_rate(self) or "no price"
        return f"{self.name} ({prices}{'; special prices' if self.has_special_prices else ''})"

    def clean(self) -> None:
        if self.is_flat_rate and self.flat_rate is None:
            raise ValidationError({"flat_rate": "Enter the price of the flat rate."})
        if self.is_flat_rate and self.has_special_prices:
            raise ValidationError({"is_flat_rate": "A flat rate has no special prices."})

    @cached_property
    def special_prices(self) -> "Sequence[PriceList]":
        """Its special price lists, in the order of their creation. A flat rate has none."""
        if self.is_flat_rate or not self.has_special_prices:
            return []
        # Those that were prefetched, if any.
        return sorted(self.price_lists.all(), key=lambda each: each.pk)


def is_offered(relation: str) -> Q:
    """Match rates for `rooms` or `services`: not those that only the others have."""
    other = "services" if relation == "rooms" else "rooms"
    return Q(**{f"{relation}__isnull": False}) | Q(**{f"{other}__isnull": True})


class MeetingRoom(UniqueNameMixin, images.PictureModel):
    """A room that customers book."""

    picture_fields = ("picture", "picture_thumbnail")

    center = models.ForeignKey(Center, models.CASCADE, related_name="rooms")
    name = LineField(max_length=255)
    resource_type = models.ForeignKey(
        ResourceType,
        models.PROTECT,
        related_name="rooms",
        limit_choices_to={"is_service": False},
        verbose_name="type",
    )
    capacity = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    rate = models.ForeignKey(
        Rate,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="rooms",
        limit_choices_to=is_offered("rooms"),
        help_text="A room without a rate is not shown and cannot be booked.",
    )
    is_live_inventory = models.BooleanField(
        "instant booking",
        default=True,
        help_text="Bookings are confirmed at once. Otherwise staff must approve each booking.",
    )
    is_active = models.BooleanField("active", default=True, help_text="Customers see the room.")
    is_blocked = models.BooleanField(
        "out of service", default=False, help_text="The room is shown but cannot be booked."
    )
    provider = LineField(max_length=255, blank=True, help_text="The company that runs the room.")
    picture = models.ImageField(
        upload_to=images.RandomName("rooms"), blank=True, validators=[images.validate_image]
    )
    picture_thumbnail = models.ImageField(
        upload_to=images.RandomName("rooms/thumbnails"), blank=True, editable=False
    )
    turnaround_minutes = models.PositiveIntegerField(
        default=0, help_text="Minutes that stay free between two bookings."
    )
    grid_minutes = models.PositiveIntegerField(
        "time slot", null=True, blank=True, help_text="Minutes. Leave empty for the default."
    )
    minimum_minutes = models.PositiveIntegerField(
        "shortest booking", null=True, blank=True, help_text="Minutes. Leave empty for the default."
    )
    maximum_minutes = models.PositiveIntegerField(
        "longest booking", null=True, blank=True, help_text="Minutes. Leave empty for the default."
    )
    booking_window_days = models.PositiveIntegerField(
        "booking window", null=True, blank=True, help_text="Days. Leave empty for the default."
    )
    terms = models.ForeignKey(
        Terms,
        models.RESTRICT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name="terms of cancellation",
        help_text="Leave empty for those of the center.",
    )

    objects = MeetingRoomQuerySet.as_manager()
    name_scope = ("center_id",)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(capacity__gte=1),
                name="room_seats_somebody",
                violation_error_message="A room has at least one seat.",
            ),
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="room_name_unique_in_center",
                violation_error_message="This center already has a room with this name.",
            ),
            models.CheckConstraint(
                condition=Q(grid_minutes__isnull=True) | Q(grid_minutes__range=(1, 1440)),
                name="room_grid_within_a_day",
                violation_error_message="A time slot is 1 to 1440 minutes.",
            ),
            models.CheckConstraint(
                condition=Q(minimum_minutes__isnull=True)
                | Q(maximum_minutes__isnull=True)
                | Q(minimum_minutes__lte=F("maximum_minutes")),
                name="room_shortest_not_above_longest",
                violation_error_message="The shortest booking must not be longer than the longest.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def full_name(self) -> str:
        """The name with the center's, because many centers have a room with the same name."""
        return f"{self.name}, {self.center.name}"

    def clean(self) -> None:
        problems = {}
        if self.rate and self.center_id and self.rate.center_id != self.center_id:
            problems["rate"] = "This rate belongs to another center."
        if self.terms and self.center_id and self.terms.center_id != self.center_id:
            problems["terms"] = "These terms belong to another center."
        if self.resource_type_id and self.resource_type.is_service:
            problems["resource_type"] = "This is a type of service, not of room."
        if problems:
            raise ValidationError(problems)

    @property
    def lowest_rate(self) -> str:
        return rates.format_entry_price(self.rate)


class Service(UniqueNameMixin):
    """Something that a center offers with its rooms: a projector, coffee."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="services")
    resource_type = models.ForeignKey(
        ResourceType,
        models.PROTECT,
        related_name="services",
        limit_choices_to={"is_service": True},
        verbose_name="type",
    )
    name = LineField(max_length=255)
    description = ParagraphsField(blank=True)
    rate = models.ForeignKey(
        Rate,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="services",
        limit_choices_to=is_offered("services"),
    )
    bill_at_center = models.BooleanField(
        default=False, help_text="Customers pay at the center, not with the booking."
    )
    minimum_booking = models.PositiveIntegerField(
        default=0, help_text="The minimum number of hours or pieces that is billed."
    )
    needs_duration = models.BooleanField(
        default=False, help_text="Customers choose a number of hours."
    )
    needs_quantity = models.BooleanField(
        default=False, help_text="Customers choose a number of pieces."
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Services with a lower position are listed first."
    )
    is_active = models.BooleanField("active", default=True)

    name_scope = ("center_id",)

    class Meta:
        ordering = ["position", "name", "pk"]
        constraints = [
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="service_name_unique_in_center",
                violation_error_message="This center already has a service with this name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        problems = {}
        if self.rate and self.center_id and self.rate.center_id != self.center_id:
            problems["rate"] = "This rate belongs to another center."
        elif self.rate and self.rate.has_special_prices:
            problems["rate"] = "This rate has special prices, which are for rooms."
        if self.resource_type_id and not self.resource_type.is_service:
            problems["resource_type"] = "This is a type of room, not of service."
        if problems:
            raise ValidationError(problems)

    @property
    def rate_description(self) -> str:
        return rates.format_entry_price(self.rate)

    @property
    def price_description(self) -> str:
        """The price for staff: a flat one is for each piece if the service has a quantity."""
        entry = rates.get_entry_price(self.rate)
        if entry is not None and not entry.amount and self.rate and not self.rate.setup_fee:
            return "free"
        price = self.rate_description
        return price.replace(" flat", " each") if self.needs_quantity else price
