"""Centers: places with meeting rooms, their hours, closures, rates and services."""

from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils.functional import cached_property

from centers import hours, rates
from centers.geo import Place
from centers.indexes import PostgresGinIndex
from centers.querysets import CenterQuerySet, MeetingRoomQuerySet
from centers.span import Span
from roombook import images, places
from roombook.address import ADDRESS_FIELDS, Address
from roombook.money import MoneyField


class Neighborhood(models.Model):
    """A part of a city that customers know by name."""

    original_name = models.CharField(
        max_length=255, blank=True, help_text="The name that maps use, if we call it otherwise."
    )
    name = models.CharField(max_length=255)
    city = models.CharField(max_length=255, blank=True)
    state = models.CharField("state or province", max_length=255, blank=True)
    custom_title = models.CharField(max_length=255, blank=True)
    landing_page_content = models.TextField(blank=True)
    coworking_landing_page_content = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                Lower("city"),
                Lower("state"),
                name="neighborhood_unique_in_city",
                violation_error_message="This city already has a neighborhood of that name.",
            ),
        ]

    def __str__(self) -> str:
        return ", ".join(part for part in (self.name, self.city, self.state) if part)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self.original_name:
            self.original_name = self.name
        super().save(*args, **kwargs)


class ResourceType(models.Model):
    """What can be booked: a kind of room, or a kind of service such as a projector."""

    name = models.CharField(max_length=255)
    is_service = models.BooleanField(default=False, help_text="A service, not a kind of room.")
    position = models.PositiveIntegerField(
        default=0, help_text="Lower comes first among the filters."
    )
    internal = models.BooleanField(default=False, help_text="Never offered as a filter.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="resource_type_name_unique",
                violation_error_message="There already is a type of that name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Center(Address):
    """A place with meeting rooms: where it is, when it is open, what it tells its customers."""

    name = models.CharField(max_length=255)
    neighborhood = models.ForeignKey(
        Neighborhood, models.PROTECT, null=True, blank=True, related_name="centers"
    )
    is_active = models.BooleanField(
        default=True, help_text="Shown to customers. An inactive center cannot be booked."
    )
    is_after_hours_support_enabled = models.BooleanField(
        "after-hours support", default=False, help_text="Can be booked outside its opening hours."
    )
    promo_text = models.CharField(max_length=255, blank=True)
    parking_information = models.TextField(blank=True)
    is_new_location = models.BooleanField("new location", default=False)
    is_new_low_price = models.BooleanField("new low price", default=False)
    rank = models.PositiveIntegerField(
        default=100, help_text="Lower comes first where nothing else decides."
    )
    tax_rate = models.DecimalField(
        "tax (percent)",
        max_digits=6,
        decimal_places=3,
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(100)],
    )

    # Derived from the columns above, the neighborhood and the landmarks whenever these change.
    x = models.FloatField(null=True, editable=False)
    y = models.FloatField(null=True, editable=False)
    z = models.FloatField(null=True, editable=False)
    name_folded = models.CharField(max_length=1024, editable=False)
    city_folded = models.CharField(max_length=1024, editable=False)
    state_folded = models.CharField(max_length=1024, editable=False)
    state_name_folded = models.CharField(max_length=1024, editable=False)
    postal_code_folded = models.CharField(max_length=1024, editable=False)
    search_text = models.TextField(editable=False)

    DERIVED = (
        *("x", "y", "z", "name_folded", "city_folded", "state_folded", "state_name_folded"),
        *("postal_code_folded", "search_text"),
    )
    DERIVED_FROM = {"name", "neighborhood", "neighborhood_id", *ADDRESS_FIELDS}

    objects = CenterQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                # Told in full: SQL takes a comparison with nothing for "perhaps", and lets it pass.
                | Q(
                    latitude__isnull=False,
                    longitude__isnull=False,
                    latitude__range=(-90, 90),
                    longitude__range=(-180, 180),
                ),
                name="center_is_on_the_map_or_not",
                violation_error_message="Latitude and longitude come together.",
            ),
            models.CheckConstraint(
                condition=Q(tax_rate__range=(0, 100)), name="center_tax_is_a_percentage"
            ),
            models.CheckConstraint(
                condition=~Q(time_zone_id=""),
                name="center_has_a_time_zone",
                violation_error_message="A center needs a time zone.",
            ),
        ]
        indexes = [
            models.Index(fields=["latitude", "longitude"], name="center_place"),
            models.Index(fields=["city_folded"], name="center_city"),
            PostgresGinIndex(
                fields=["search_text"], opclasses=["gin_trgm_ops"], name="center_search_text"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    # Mutators

    def clean(self) -> None:
        self.normalize()
        problems = {}
        if self.country and not places.country_code(self.country):
            problems["country"] = "This is not the name or code of a country."
        if (self.latitude is None) != (self.longitude is None):
            problems["longitude"] = "Latitude and longitude come together."
        if not self.time_zone_id:
            problems["time_zone_id"] = "A center needs a time zone, or a place on the map."
        elif not places.is_time_zone(self.time_zone_id):
            problems["time_zone_id"] = 'This is not a time zone, such as "America/Denver".'
        if problems:
            raise ValidationError(problems)

    def normalize(self) -> None:
        """Write country and state as codes where we know them; find the time zone by the place."""
        self.country = places.country_code(self.country) or self.country
        self.state = places.written_state(self.country, self.state)
        if not self.time_zone_id and self.latitude is not None and self.longitude is not None:
            self.time_zone_id = places.time_zone_at(self.latitude, self.longitude)

    def save(self, *args: Any, **kwargs: Any) -> None:
        fields = kwargs.get("update_fields")
        if fields is None or self.DERIVED_FROM & set(fields):
            self.normalize()
            self.derive()
            if fields is not None:
                changed = {"country", "state", "time_zone_id", *self.DERIVED}
                kwargs["update_fields"] = {*fields, *changed}
        super().save(*args, **kwargs)

    def derive(self) -> None:
        """Set the columns that searches read. Reads the neighborhood and the landmarks."""
        vector = self.place.vector if self.place else (None, None, None)
        self.x, self.y, self.z = vector
        state_code, state_name = places.state_code_and_name(self.country, self.state)
        self.name_folded = places.folded(self.name)
        self.city_folded = places.folded(self.city)
        self.state_folded = places.folded(state_code)
        self.state_name_folded = places.folded(state_name)
        self.postal_code_folded = places.folded(self.postal_code)
        texts = [
            *(self.name, self.street1, self.street2, self.street3, self.city),
            *(self.state, state_code, state_name, self.postal_code),
            *(self.country, *places.country_names(self.country)),
        ]
        if self.neighborhood is not None:
            texts += [self.neighborhood.name, self.neighborhood.original_name]
        if self.pk is not None:
            texts += self.landmarks.values_list("name", flat=True)
        # A word of a query has no line break in it: it never matches across two texts.
        self.search_text = "\n".join(dict.fromkeys(filter(None, map(places.folded, texts))))

    # Properties

    @property
    def zone(self) -> ZoneInfo:
        return places.time_zone(self.time_zone_id)

    @property
    def place(self) -> Place | None:
        """Where the center is on the globe, if we know."""
        if self.latitude is None or self.longitude is None:
            return None
        return Place(self.latitude, self.longitude)

    # Whether the account that asks has it among its favorites; `for_user` brings it along.
    is_favorite: bool | None = None

    # From where a search looked: miles, and what `by_distance` measures them by.
    distance_from_query: float | None = None
    squared_chord: float | None = None

    # What responses show; `with_details` brings all of it along, without it each costs a query.

    @cached_property
    def rooms_on_offer(self) -> list["MeetingRoom"]:
        """The active, priced rooms."""
        return list(self.rooms.on_offer().with_rates())

    @cached_property
    def services_on_offer(self) -> list["Service"]:
        return list(self.services.filter(is_active=True).select_related("rate", "resource_type"))

    @cached_property
    def meeting_rooms(self) -> list["MeetingRoom"]:
        """The rooms that a response lists; a search keeps those that its filters want."""
        return self.rooms_on_offer

    @property
    def image(self) -> "CenterImage | None":
        return next(iter(self.images.all()), None)

    @property
    def center_hours(self) -> list[dict[str, str]]:
        runs = hours.runs(self.opening_hours.all())
        return [{"value": value, "display_value": display} for value, display in runs]

    @property
    def center_hours_concatenated(self) -> str:
        return hours.concatenated(self.opening_hours.all())

    @property
    def lowest_rate(self) -> str:
        """The lowest of the rooms' entry prices, compared within the best kind that any room has.

        A center with one room by the hour and one by the day shows the price of the hour.
        """
        price = rates.lowest_entry(room.rate for room in self.rooms_on_offer)
        return "" if price is None else str(price)

    @property
    def is_live_inventory(self) -> bool:
        return any(room.is_live_inventory for room in self.rooms_on_offer)

    @property
    def is_not_favorite(self) -> bool | None:
        return None if self.is_favorite is None else not self.is_favorite


class OpeningHours(models.Model):
    """One stretch of opening on a weekday, in the center's wall-clock time."""

    class Weekday(models.IntegerChoices):
        MONDAY = 0
        TUESDAY = 1
        WEDNESDAY = 2
        THURSDAY = 3
        FRIDAY = 4
        SATURDAY = 5
        SUNDAY = 6

    center = models.ForeignKey(Center, models.CASCADE, related_name="opening_hours")
    weekday = models.PositiveSmallIntegerField(choices=Weekday)
    opens = models.TimeField()
    closes = models.TimeField(help_text="00:00 is midnight at the end of the day.")

    class Meta:
        ordering = ["weekday", "opens"]
        verbose_name_plural = "opening hours"
        constraints = [
            models.CheckConstraint(
                condition=Q(weekday__range=(0, 6)), name="opening_hours_on_a_weekday"
            ),
            models.CheckConstraint(
                condition=Q(closes__gt=F("opens")) | Q(closes=hours.MIDNIGHT),
                name="opening_hours_open_before_they_close",
                violation_error_message="Closing comes after opening; 00:00 is midnight.",
            ),
            models.UniqueConstraint(
                fields=["center", "weekday", "opens"], name="opening_hours_once_a_start"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_weekday_display()} {self.opens:%H:%M}-{self.closes:%H:%M}"


class Closure(models.Model):
    """Time when a center, or one of its rooms, cannot be had: a holiday, maintenance."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="closures")
    room = models.ForeignKey(
        "MeetingRoom",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="closures",
        help_text="Empty: the whole center.",
    )
    starts_at = models.DateTimeField(help_text="On the center's clock.")
    ends_at = models.DateTimeField(help_text="On the center's clock.")
    reason = models.CharField(max_length=255, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(starts_at__lt=F("ends_at")),
                name="closure_starts_before_it_ends",
                violation_error_message="A closure starts before it ends.",
            ),
        ]
        indexes = [models.Index(fields=["center", "ends_at"], name="closure_of_center")]

    def __str__(self) -> str:
        return self.reason or f"Closure {self.pk}"

    def clean(self) -> None:
        if self.room and self.center_id and self.room.center_id != self.center_id:
            raise ValidationError({"room": "This room belongs to another center."})

    @property
    def span(self) -> Span:
        return Span(self.starts_at, self.ends_at)


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
            models.UniqueConstraint("center", Lower("name"), name="rate_name_unique_in_center"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({rates.describe(self) or 'no price'})"

    def clean(self) -> None:
        if self.is_flat_rate and self.flat_rate is None:
            raise ValidationError({"flat_rate": "A flat rate needs its price."})

    @property
    def description_for_customers(self) -> str:
        return self.description or rates.describe(self)


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
        upload_to=images.RandomName("rooms"), blank=True, validators=[images.validate]
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
            models.CheckConstraint(condition=Q(capacity__gte=1), name="room_seats_somebody"),
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

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        changed = images.prepare(self, "picture", "picture_thumbnail")
        images.delete_after_commit(*images.stored(self, changed))
        if changed and kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], *changed}
        super().save(*args, **kwargs)

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
        return rates.entry_price(self.rate)

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

    # How the response that this row was read for tells it; its own rooms share it.
    told: dict[str, Any] | None = None

    @property
    def rate_description(self) -> str:
        return rates.entry_price(self.rate)


class CenterImage(models.Model):
    """A picture of a center; the first one stands for it."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="images")
    image = models.ImageField(upload_to=images.RandomName("centers"), validators=[images.validate])
    thumbnail = models.ImageField(
        upload_to=images.RandomName("centers/thumbnails"), blank=True, editable=False
    )
    position = models.PositiveIntegerField(default=0, help_text="Lower comes first.")

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return f"Image {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        changed = images.prepare(self, "image", "thumbnail")
        images.delete_after_commit(*images.stored(self, changed))
        if changed and kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], *changed}
        super().save(*args, **kwargs)


class Landmark(models.Model):
    """Something near a center that people find it by."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="landmarks")
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    type = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class Favorite(models.Model):
    """A center that an account wants to find again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="favorites")
    center = models.ForeignKey(Center, models.CASCADE, related_name="favorites")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "center"], name="favorite_once_an_account"),
        ]

    def __str__(self) -> str:
        return f"Favorite {self.pk}"
