"""Centers: where they are, when they are open, what they show of themselves."""

from datetime import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.functional import cached_property

from centers import hours
from centers.geo import Coordinates
from centers.indexes import PostgresGinIndex
from centers.models.catalog import Neighborhood
from centers.querysets import CenterQuerySet
from centers.record_properties import CenterFacts
from centers.span import Span
from roombook import images, places
from roombook.address import ADDRESS_FIELDS, Address

if TYPE_CHECKING:
    from centers.models.room import MeetingRoom, Service


class Center(CenterFacts, Address):
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

    SEARCH_COLUMNS = (
        *("x", "y", "z", "name_folded", "city_folded", "state_folded", "state_name_folded"),
        *("postal_code_folded", "search_text"),
    )
    SEARCH_COLUMN_SOURCES = {"name", "neighborhood", "neighborhood_id", *ADDRESS_FIELDS}

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
                condition=Q(tax_rate__range=(0, 100)),
                name="center_tax_is_a_percentage",
                violation_error_message="The tax is a percentage, 0 to 100.",
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
            models.Index(fields=["postal_code_folded"], name="center_postal_code"),
            models.Index(fields=["name_folded"], name="center_name"),
            # The order in which staff list centers, and customers where nothing else decides.
            models.Index(fields=["rank", "name_folded", "id"], name="center_rank"),
            # Which clocks there are: asked for by whoever counts days.
            models.Index(fields=["time_zone_id"], name="center_time_zone"),
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
        if self.country and not places.get_country_code(self.country):
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
        self.country = places.get_country_code(self.country) or self.country
        self.state = places.format_state(self.country, self.state)
        if not self.time_zone_id and self.latitude is not None and self.longitude is not None:
            self.time_zone_id = places.find_time_zone(self.latitude, self.longitude)

    def save(self, *args: Any, **kwargs: Any) -> None:
        fields = kwargs.get("update_fields")
        if fields is None or self.SEARCH_COLUMN_SOURCES & set(fields):
            self.normalize()
            self.update_search_columns()
            if fields is not None:
                changed = {"country", "state", "time_zone_id", *self.SEARCH_COLUMNS}
                kwargs["update_fields"] = {*fields, *changed}
        super().save(*args, **kwargs)

    def update_search_columns(self) -> None:
        """Set the columns that searches read. Reads the neighborhood and the landmarks."""
        vector = self.coordinates.vector if self.coordinates else (None, None, None)
        self.x, self.y, self.z = vector
        state_code, state_name = places.get_state_code_and_name(self.country, self.state)
        self.name_folded = places.fold_text(self.name)
        self.city_folded = places.fold_text(self.city)
        self.state_folded = places.fold_text(state_code)
        self.state_name_folded = places.fold_text(state_name)
        self.postal_code_folded = places.fold_text(self.postal_code)
        texts = [
            *(self.name, self.street1, self.street2, self.street3, self.city),
            *(self.state, state_code, state_name, self.postal_code),
            *(self.country, *places.get_country_names(self.country)),
        ]
        if self.neighborhood is not None:
            texts += [self.neighborhood.name, self.neighborhood.original_name]
        if self.pk is not None:
            texts += [landmark.name for landmark in self.landmarks.all()]
        # A word of a query has no line break in it: it never matches across two texts.
        self.search_text = "\n".join(dict.fromkeys(filter(None, map(places.fold_text, texts))))

    # Properties

    @property
    def coordinates(self) -> Coordinates | None:
        """Where the center is on the globe, if we know."""
        if self.latitude is None or self.longitude is None:
            return None
        return Coordinates(self.latitude, self.longitude)

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

    def stretches(self) -> list[tuple[int, time, time]]:
        return [(each.weekday, each.opens, each.closes) for each in self.opening_hours.all()]

    def pictures(self) -> "models.QuerySet[CenterImage]":
        return self.images.all()


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
                condition=Q(weekday__range=(0, 6)),
                name="opening_hours_on_a_weekday",
                violation_error_message="A weekday is 0 (Monday) to 6 (Sunday).",
            ),
            models.CheckConstraint(
                condition=Q(closes__gt=F("opens")) | Q(closes=hours.MIDNIGHT),
                name="opening_hours_open_before_they_close",
                violation_error_message="Closing comes after opening; 00:00 is midnight.",
            ),
            models.UniqueConstraint(
                fields=["center", "weekday", "opens"],
                name="opening_hours_once_a_start",
                violation_error_message="The center opens at this time of this day already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_weekday_display()} {self.opens:%H:%M}-{self.closes:%H:%M}"


class Closure(models.Model):
    """Time when a center, or one of its rooms, cannot be had: a holiday, maintenance."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="closures")
    room = models.ForeignKey(
        "centers.MeetingRoom",
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
        indexes = [
            models.Index(fields=["center", "ends_at"], name="closure_of_center"),
            models.Index(fields=["starts_at", "id"], name="closure_by_start"),
        ]

    def __str__(self) -> str:
        return self.reason or f"Closure {self.pk}"

    def clean(self) -> None:
        if self.room and self.center_id and self.room.center_id != self.center_id:
            raise ValidationError({"room": "This room belongs to another center."})

    @property
    def span(self) -> Span:
        return Span(self.starts_at, self.ends_at)


class CenterImage(models.Model):
    """A picture of a center; the first one stands for it."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="images")
    image = models.ImageField(
        upload_to=images.RandomName("centers"), validators=[images.validate_image]
    )
    thumbnail = models.ImageField(
        upload_to=images.RandomName("centers/thumbnails"), blank=True, editable=False
    )
    position = models.PositiveIntegerField(default=0, help_text="Lower comes first.")

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return f"Image {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        changed = images.process_upload(self, "image", "thumbnail")
        images.delete_after_commit(*images.get_stored_files(self, changed))
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
            models.UniqueConstraint(
                fields=["user", "center"],
                name="favorite_once_an_account",
                violation_error_message="This center is among the account's favorites already.",
            ),
        ]

    def __str__(self) -> str:
        return f"Favorite {self.pk}"
