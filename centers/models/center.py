"""Centers, with what customers see of them: pictures, landmarks, and whose favorites they are."""

from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from centers.geo import Coordinates
from centers.models.catalog import Neighborhood
from centers.models.terms import Terms
from centers.querysets import CenterQuerySet, FavoriteQuerySet
from roombook import images, places
from roombook.address import ADDRESS_FIELDS, POSTAL_FIELDS, Address
from roombook.texts import LineField, ParagraphsField


class Center(Address):
    """A place with meeting rooms."""

    name = LineField(max_length=255)
    neighborhood = models.ForeignKey(
        Neighborhood, models.PROTECT, null=True, blank=True, related_name="centers"
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="Customers see the center. An inactive center cannot be booked.",
    )
    is_after_hours_support_enabled = models.BooleanField(
        "after-hours support", default=False, help_text="Can be booked outside its opening hours."
    )
    promo_text = LineField(max_length=255, blank=True)
    parking_information = ParagraphsField(blank=True)
    is_new_location = models.BooleanField("new location", default=False)
    is_new_low_price = models.BooleanField("new low price", default=False)
    rank = models.PositiveIntegerField(
        default=100, help_text="Centers with a lower rank are listed first."
    )
    tax_rate = models.DecimalField(
        "tax (percent)",
        max_digits=6,
        decimal_places=3,
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(100)],
    )
    prices_include_tax = models.BooleanField(
        default=False,
        help_text="The prices of rates and services contain the tax; it is not added to them.",
    )
    terms = models.ForeignKey(
        Terms,
        models.RESTRICT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name="terms of cancellation",
        help_text="For rooms without their own. Leave empty for those of the deployment.",
    )

    # Bookings that were made before may be outside the hours, or have the former address.
    hours_changed_at = models.DateTimeField(null=True, editable=False)
    address_changed_at = models.DateTimeField(null=True, editable=False)

    # What searches read. Derived from the columns above, the neighborhood and the landmarks, and
    # updated when any of these changes (centers/search_index.py).
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
    CHANGE_COLUMNS = {
        "hours_changed_at": {
            *("opening_hours", "is_after_hours_support_enabled", "time_zone_id"),
        },
        "address_changed_at": set(POSTAL_FIELDS),
    }
    SEARCH_COLUMN_SOURCES = {"name", "neighborhood", "neighborhood_id", *ADDRESS_FIELDS}

    objects = CenterQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                # NOT NULL is explicit, because a check that evaluates to NULL passes.
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
            # The order of lists for staff, and of searches without a location.
            models.Index(fields=["rank", "name_folded", "id"], name="center_rank"),
            # Reports read the distinct time zones.
            models.Index(fields=["time_zone_id"], name="center_time_zone"),
            GinIndex(fields=["search_text"], opclasses=["gin_trgm_ops"], name="center_search_text"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        self.normalize()
        problems = {}
        if self.country and not places.get_country_code(self.country):
            problems["country"] = "Enter the name or code of a country."
        if (self.latitude is None) != (self.longitude is None):
            problems["longitude"] = "Latitude and longitude come together."
        if not self.time_zone_id:
            problems["time_zone_id"] = "Enter a time zone, or latitude and longitude."
        elif not places.is_time_zone(self.time_zone_id):
            problems["time_zone_id"] = 'Enter a time zone such as "America/Denver".'
        if self.terms and self.terms.center_id != self.pk:
            problems["terms"] = "These terms belong to another center."
        if problems:
            raise ValidationError(problems)

    def normalize(self) -> None:
        """Replace names of country and state by codes; derive a missing time zone."""
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
        if names := set().union(*self.CHANGE_COLUMNS.values()) & set(fields or ()):
            # The same state may have been entered by another name.
            stored = Center.objects.filter(pk=self.pk).values(*names).get()
            changed = {name for name in names if stored[name] != getattr(self, name)}
            for column, each in self.CHANGE_COLUMNS.items():
                if each & changed:
                    setattr(self, column, timezone.now())  # noqa: TID251 (`save` has no `now`)
                    kwargs["update_fields"] = {*kwargs["update_fields"], column}
        super().save(*args, **kwargs)

    def update_search_columns(self) -> None:
        """Derive SEARCH_COLUMNS. Reads the neighborhood and the landmarks."""
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
            *(self.country, *places.get_searched_country_names(self.country)),
        ]
        if self.neighborhood is not None:
            texts += [self.neighborhood.name, self.neighborhood.original_name]
        if self.pk is not None:
            texts += [landmark.name for landmark in self.landmarks.all()]
        # The words of a query contain no line break, so none matches across two texts.
        self.search_text = "\n".join(places.list_search_texts(texts, self.postal_code))

    @property
    def coordinates(self) -> Coordinates | None:
        if self.latitude is None or self.longitude is None:
            return None
        return Coordinates(self.latitude, self.longitude)

    @property
    def zone(self) -> ZoneInfo:
        return places.get_time_zone(self.time_zone_id)


class CenterImage(images.PictureModel):
    """A picture of a center. The first one represents the center in lists."""

    picture_fields = ("image", "thumbnail")

    center = models.ForeignKey(Center, models.CASCADE, related_name="images")
    image = models.ImageField(
        upload_to=images.RandomName("centers"), validators=[images.validate_image]
    )
    thumbnail = models.ImageField(
        upload_to=images.RandomName("centers/thumbnails"), blank=True, editable=False
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Pictures with a lower position are shown first."
    )

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return f"Image {self.pk}"


class Landmark(models.Model):
    """A place near a center by which people find the center."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="landmarks")
    name = LineField(max_length=255)
    description = ParagraphsField(blank=True)
    type = LineField(max_length=255, blank=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class Favorite(models.Model):
    """A center that an account has marked as a favorite."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="favorites")
    center = models.ForeignKey(Center, models.CASCADE, related_name="favorites")

    objects = FavoriteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "center"],
                name="favorite_once_an_account",
                violation_error_message="This center is already a favorite of the account.",
            ),
        ]

    def __str__(self) -> str:
        return f"Favorite {self.pk}"
