"""What centers offer and for what price: rooms, services, rates."""

from typing import Any

from django.contrib.postgres.indexes import OpClass
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Upper

from centers import rates
from centers.indexes import PostgresGinIndex
from centers.models.catalog import ResourceType
from centers.models.center import Center
from centers.querysets import MeetingRoomQuerySet
from roombook import images
from roombook.money import MoneyField


class Rate(models.Model):
    """What rooms or services of a center cost; an empty tier is not offered, 0 is free."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="rates")
    name = models.CharField(max_length=255, help_text="For staff.")
    is_flat_rate = models.BooleanField("flat rate", default=False)
    flat_rate = MoneyField("flat price", null=True, blank=True)
    hourly = MoneyField("per hour", null=True, blank=True)
    half_day = MoneyField("per half day", null=True, blank=True, help_text="Up to 4 hours.")
    full_day = MoneyField("per day", null=True, blank=True)
    setup_fee = MoneyField("set-up fee", null=True, blank=True)
    bill_in_blocks = models.BooleanField(
        "bill whole hours", default=False, help_text="By the started hour, not the quarter."
    )
    description = models.CharField(
        max_length=255, blank=True, help_text="For customers. Empty: written from the prices."
    )

    class Meta:
        constraints = [
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 0}),
                    name=f"rate_{name}_is_not_negative",
                    violation_error_message="A price is not negative.",
                )
                for name in ("flat_rate", "hourly", "half_day", "full_day", "setup_fee")
            ),
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="rate_name_unique_in_center",
                violation_error_message="This center already has a rate of that name.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({rates.describe_rate(self) or 'no price'})"

    def clean(self) -> None:
        if self.is_flat_rate and self.flat_rate is None:
            raise ValidationError({"flat_rate": "A flat rate needs its price."})

    @property
    def description_for_customers(self) -> str:
        return self.description or rates.describe_rate(self)


class MeetingRoom(models.Model):
    """A room that customers book."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="rooms")
    name = models.CharField(max_length=255)
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
        help_text="Without one the room is not shown and cannot be booked.",
    )
    is_live_inventory = models.BooleanField(
        "live inventory",
        default=True,
        help_text="Booked at once. Otherwise the center has to agree to each booking.",
    )
    is_active = models.BooleanField("active", default=True, help_text="Shown to customers.")
    is_blocked = models.BooleanField(
        "out of service", default=False, help_text="Shown, but cannot be booked for now."
    )
    provider = models.CharField(max_length=255, blank=True, help_text="Who runs the room.")
    picture = models.ImageField(
        upload_to=images.RandomName("rooms"), blank=True, validators=[images.validate_image]
    )
    picture_thumbnail = models.ImageField(
        upload_to=images.RandomName("rooms/thumbnails"), blank=True, editable=False
    )
    turnaround_minutes = models.PositiveIntegerField(
        default=0, help_text="Kept free between two bookings."
    )
    grid_minutes = models.PositiveIntegerField(
        "bookings start and end at", null=True, blank=True, help_text="Minutes. Empty: as usual."
    )
    minimum_minutes = models.PositiveIntegerField(
        "shortest booking", null=True, blank=True, help_text="Minutes. Empty: as usual."
    )
    maximum_minutes = models.PositiveIntegerField(
        "longest booking", null=True, blank=True, help_text="Minutes. Empty: as usual."
    )
    booking_window_days = models.PositiveIntegerField(
        "booked ahead at most", null=True, blank=True, help_text="Days. Empty: as usual."
    )

    objects = MeetingRoomQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(capacity__gte=1),
                name="room_seats_somebody",
                violation_error_message="A room is for one person at least.",
            ),
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="room_name_unique_in_center",
                violation_error_message="This center already has a room of that name.",
            ),
            models.CheckConstraint(
                condition=Q(grid_minutes__isnull=True) | Q(grid_minutes__range=(1, 1440)),
                name="room_grid_within_a_day",
                violation_error_message="The grid is 1 to 1440 minutes.",
            ),
            models.CheckConstraint(
                condition=Q(minimum_minutes__isnull=True)
                | Q(maximum_minutes__isnull=True)
                | Q(minimum_minutes__lte=F("maximum_minutes")),
                name="room_shortest_not_above_longest",
                violation_error_message="The shortest booking is longer than the longest.",
            ),
        ]
        indexes = [
            # Staff find rooms by a part of their name.
            PostgresGinIndex(OpClass(Upper("name"), name="gin_trgm_ops"), name="room_name_parts"),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        changed = images.process_upload(self, "picture", "picture_thumbnail")
        images.delete_after_commit(*images.get_stored_files(self, changed))
        if changed and kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], *changed}
        super().save(*args, **kwargs)

    @property
    def full_name(self) -> str:
        """With its center, whose row is at hand: many centers have a room of the same name."""
        return f"{self.name}, {self.center.name}"

    def clean(self) -> None:
        problems = {}
        if self.rate and self.center_id and self.rate.center_id != self.center_id:
            problems["rate"] = "This rate belongs to another center."
        if self.resource_type_id and self.resource_type.is_service:
            problems["resource_type"] = "This is a type of service, not of room."
        if problems:
            raise ValidationError(problems)

    @property
    def lowest_rate(self) -> str:
        return rates.format_entry_price(self.rate)

    @property
    def available_services(self) -> "list[Service]":
        return self.center.services_on_offer


class Service(models.Model):
    """An extra that a center offers with its rooms: a projector, coffee."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="services")
    resource_type = models.ForeignKey(
        ResourceType,
        models.PROTECT,
        related_name="services",
        limit_choices_to={"is_service": True},
        verbose_name="type",
    )
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    rate = models.ForeignKey(Rate, models.PROTECT, null=True, blank=True, related_name="services")
    bill_at_center = models.BooleanField(
        default=False, help_text="Paid at the center, not with the booking."
    )
    minimum_booking = models.PositiveIntegerField(
        default=0, help_text="Hours or pieces that are billed at least."
    )
    needs_duration = models.BooleanField(default=False, help_text="Billed by the hour.")
    needs_quantity = models.BooleanField(default=False, help_text="Billed by the piece.")
    position = models.PositiveIntegerField(default=0, help_text="Lower comes first.")
    is_active = models.BooleanField("active", default=True)

    class Meta:
        ordering = ["position", "name", "pk"]
        constraints = [
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="service_name_unique_in_center",
                violation_error_message="This center already has a service of that name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        problems = {}
        if self.rate and self.center_id and self.rate.center_id != self.center_id:
            problems["rate"] = "This rate belongs to another center."
        if self.resource_type_id and not self.resource_type.is_service:
            problems["resource_type"] = "This is a type of room, not of service."
        if problems:
            raise ValidationError(problems)

    # Parts of the contract's ServiceInfo that are the customer's to say, not the center's.
    duration_hours = None
    quantity = None

    @property
    def rate_description(self) -> str:
        return rates.format_entry_price(self.rate)
