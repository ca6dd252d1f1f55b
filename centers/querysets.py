"""Query sets of centers, rooms, closures and favorites. Each method filters, sorts or annotates."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from django.db import models
from django.db.models import Exists, ExpressionWrapper, F, OuterRef, Q

from centers import geo
from centers.rates import PRICE_FIELDS
from roombook.db.transactions import in_transaction

if TYPE_CHECKING:
    from accounts.models import User
    from centers.models import Center, Closure, Favorite, MeetingRoom  # noqa: F401 (base classes)


def _has_price() -> Q:
    """Whether the room's rate has a price: `centers.rates.is_usable` in SQL."""
    condition = Q()
    for is_flat_rate, fields in PRICE_FIELDS.items():
        has_price = Q()
        for name in fields:
            has_price |= Q(**{f"rate__{name}__isnull": False})
        condition |= Q(has_price, rate__is_flat_rate=is_flat_rate)
    return condition


class MeetingRoomQuerySet(models.QuerySet["MeetingRoom"]):
    def on_offer(self) -> Self:
        """Active rooms with a price. Whether their center is active is not checked."""
        return self.filter(_has_price(), is_active=True)

    def with_booking_details(self) -> Self:
        """With the rows that checking availability needs."""
        return self.select_related("center", "rate", "resource_type")


class SearchCircle(NamedTuple):
    """A circle on the globe, as a query needs it: bounding box, middle and radius."""

    south: float
    north: float
    longitudes: Sequence[tuple[float, float]]
    vector: geo.UnitVector
    squared_chord: float

    @classmethod
    def around(cls, middle: geo.Coordinates, miles: float) -> "SearchCircle":
        box = geo.get_bounding_box(middle, miles)
        squared_chord = geo.squared_chord_from_miles(miles)
        return cls(box.south, box.north, box.longitudes, middle.vector, squared_chord)


class CenterQuerySet(models.QuerySet["Center"]):
    def active(self) -> Self:
        return self.filter(is_active=True)

    def list_time_zones(self) -> list[str]:
        """The different time zones of the centers, sorted by name."""
        zones = self.order_by("time_zone_id").values_list("time_zone_id", flat=True)
        return list(zones.distinct())

    def within(self, circle: SearchCircle) -> Self:
        """Centers in a circle. The box uses the index; the chord decides."""
        longitudes = Q()
        for bounds in circle.longitudes:
            longitudes |= Q(longitude__range=bounds)
        in_box = self.filter(longitudes, latitude__range=(circle.south, circle.north))
        distance = _squared_chord_expression(circle.vector)
        return in_box.alias(circle=distance).filter(circle__lte=circle.squared_chord)

    def containing_words(self, words: Iterable[str]) -> Self:
        """Centers whose search text contains every one of the normalized words."""
        centers = self
        for word in words:
            centers = centers.filter(search_text__contains=word)
        return centers

    def matching_names(self, names: object) -> Self:
        """Centers whose city, postal code or name is one of these."""
        return self.filter(self._has_name(names))

    def not_matching_names(self, names: object) -> Self:
        return self.exclude(self._has_name(names))

    @staticmethod
    def _has_name(names: object) -> Q:
        return (
            Q(city_folded__any_of=names)
            | Q(postal_code_folded__any_of=names)
            | Q(name_folded__any_of=names)
        )

    def by_distance(self, vector: geo.UnitVector) -> Self:
        """Nearest first, centers without coordinates last. Annotates `squared_chord`."""
        return self.annotate(squared_chord=_squared_chord_expression(vector)).order_by(
            F("squared_chord").asc(nulls_last=True), "rank", "name_folded", "pk"
        )

    def by_rank(self) -> Self:
        """By the rank that staff set, in the order of an index."""
        return self.order_by("rank", "name_folded", "pk")

    def by_rank_unindexed(self) -> Self:
        """By rank, sorted after filtering.

        By the index, PostgreSQL would read all centers to find a few.
        """
        return self.order_by(F("rank") + 0, "name_folded", "pk")


class ClosureQuerySet(models.QuerySet["Closure"]):
    def overlapping(self, start: object, end: object) -> Self:
        return self.filter(starts_at__lt=end, ends_at__gt=start)

    def of_whole_center(self) -> Self:
        return self.filter(room__isnull=True)

    def closing(self, room: object, *, center: object) -> Self:
        """Closures of the room or of its whole center."""
        return self.filter(Q(room__isnull=True) | Q(room=room), center=center)


class FavoriteQuerySet(models.QuerySet["Favorite"]):
    def exists_for(self, user: object, *, center: str = "pk") -> Exists:
        """Whether the center that the outer query names is a favorite of the account."""
        return Exists(self.filter(user=user, center=OuterRef(center)))

    @in_transaction
    def set_favorite(self, user: "User", center: "Center", *, is_favorite: bool) -> None:
        """Add a center to the account's favorites or remove it. Safe to repeat."""
        if is_favorite:
            type(user).objects.lock_active(user.pk)
            self.get_or_create(user=user, center=center)
        else:
            self.filter(user=user, center=center).delete()


def _squared_chord_expression(vector: geo.UnitVector) -> Any:
    # Products, not POWER: SQLite would call Python for each row.
    x, y, z = (F(name) - value for name, value in zip("xyz", vector, strict=True))
    return ExpressionWrapper(x * x + y * y + z * z, output_field=models.FloatField())
