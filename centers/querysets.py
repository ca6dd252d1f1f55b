"""What can be asked about centers, rooms and rates; each method reads as a part of a sentence."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from django.db import models
from django.db.models import (
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Prefetch,
    Q,
)

from centers import geo
from roombook import places

if TYPE_CHECKING:
    from centers.models import Center, MeetingRoom  # noqa: F401 (a base class names it)
    from centers.search.filters import FilterParams, SearchFilters

# A rate with at least one price that it can be billed by (centers.rates.is_usable, as a query).
USABLE_RATE = Q(rate__is_flat_rate=True, rate__flat_rate__isnull=False) | Q(
    Q(rate__hourly__isnull=False)
    | Q(rate__half_day__isnull=False)
    | Q(rate__full_day__isnull=False),
    rate__is_flat_rate=False,
)


class MeetingRoomQuerySet(models.QuerySet["MeetingRoom"]):
    """Questions about rooms."""

    def on_offer(self) -> Self:
        """Active rooms with a price; the center's own state is not asked."""
        return self.filter(USABLE_RATE, is_active=True)

    def with_rates(self) -> Self:
        """With all that a response tells of a room, in the order of their names."""
        return self.select_related("rate", "resource_type").order_by("name", "pk")

    def with_booking_details(self) -> Self:
        """With all that the evaluator of availability asks: also rooms that it will refuse."""
        return self.select_related("center", "rate", "resource_type")

    def wanted(self, filters: "SearchFilters | FilterParams") -> Self:
        """Rooms that meet all the room filters."""
        rooms = self
        if filters.capacity_low is not None:
            rooms = rooms.filter(capacity__gte=filters.capacity_low)
        if filters.capacity_high is not None:
            rooms = rooms.filter(capacity__lte=filters.capacity_high)
        if filters.resource_type_ids:
            rooms = rooms.filter(resource_type__any_of=filters.resource_type_ids)
        if filters.only_realtime:
            rooms = rooms.filter(is_live_inventory=True)
        return rooms


class SearchCircle(NamedTuple):
    """A circle on the globe as a query asks for it: its box, its middle, its radius."""

    south: float
    north: float
    longitudes: Sequence[tuple[float, float]]
    vector: geo.UnitVector
    squared_chord: float

    @classmethod
    def around(cls, place: geo.Coordinates, miles: float) -> "SearchCircle":
        box = geo.get_bounding_box(place, miles)
        chord = geo.squared_chord_from_miles(miles)
        return cls(box.south, box.north, box.longitudes, place.vector, chord)


class CenterQuerySet(models.QuerySet["Center"]):
    """Questions about centers."""

    # Which centers

    def active(self) -> Self:
        return self.filter(is_active=True)

    def listed(self) -> Self:
        """Centers that customers find: active, with an active, priced room."""
        from centers.models import MeetingRoom

        return self.active().filter(_has_related(MeetingRoom.objects.on_offer()))

    def within(self, circle: "SearchCircle") -> Self:
        """Centers in a circle. The box is for the index; the chord decides."""
        longitudes = Q()
        for bounds in circle.longitudes:
            longitudes |= Q(longitude__range=bounds)
        boxed = self.filter(longitudes, latitude__range=(circle.south, circle.north))
        return boxed.alias(circle=_squared_chord_expression(circle.vector)).filter(
            circle__lte=circle.squared_chord
        )

    def containing_words(self, words: Iterable[str]) -> Self:
        """Centers in whose texts every one of the folded words occurs."""
        centers = self
        for word in words:
            centers = centers.filter(search_text__contains=word)
        return centers

    def matching_names(self, names: Any) -> Self:
        """Centers whose city, postal code or name is one of these."""
        return self.filter(self._names_condition(names))

    def not_matching_names(self, names: Any) -> Self:
        return self.exclude(self._names_condition(names))

    @staticmethod
    def _names_condition(names: Any) -> Q:
        return (
            Q(city_folded__any_of=names)
            | Q(postal_code_folded__any_of=names)
            | Q(name_folded__any_of=names)
        )

    def in_city(self, city: str) -> Self:
        return self.filter(city_folded=places.fold_text(city))

    def in_state(self, state: str) -> Self:
        name = places.fold_text(state)
        return self.filter(Q(state_folded=name) | Q(state_name_folded=name))

    def in_country(self, country: str) -> Self:
        code = places.get_country_code(country)
        return self.filter(country=code) if code else self.none()

    def in_neighborhood(self, name: str) -> Self:
        from centers.models import Neighborhood

        # Few rows, compared as text is compared everywhere: any case, any accent.
        rows = Neighborhood.objects.values_list("pk", "name", "original_name")
        wanted = places.fold_text(name)
        ids = [pk for pk, *names in rows if wanted in map(places.fold_text, names)]
        return self.filter(neighborhood__in=ids)

    def in_postal_code(self, postal_code: str) -> Self:
        return self.filter(postal_code_folded=places.fold_text(postal_code))

    def meeting(self, filters: "SearchFilters | FilterParams") -> Self:
        """Listed centers that meet the filters."""
        return self.active().meeting_center_filters(filters).filter(offers_condition(filters))

    def meeting_center_filters(self, filters: "SearchFilters | FilterParams") -> Self:
        """Centers that meet those filters that a look at their own row can judge."""
        centers = self
        if filters.neighborhood_ids:
            centers = centers.filter(neighborhood__any_of=filters.neighborhood_ids)
        if filters.only_after_hours:
            centers = centers.filter(is_after_hours_support_enabled=True)
        return centers

    # In which order

    def by_distance(self, vector: geo.UnitVector) -> Self:
        """Nearest first; those without a place on the map last. Annotates `squared_chord`."""
        return self.annotate(squared_chord=_squared_chord_expression(vector)).order_by(
            F("squared_chord").asc(nulls_last=True), "rank", "name_folded", "pk"
        )

    def by_rank(self) -> Self:
        """The staff's rank first, in the order of an index."""
        return self.order_by("rank", "name_folded", "pk")

    def by_rank_unindexed(self) -> Self:
        """By rank, put in order once they are found.

        In the order of the index, PostgreSQL would look through all centers for the few.
        """
        return self.order_by(F("rank") + 0, "name_folded", "pk")

    # With what

    def with_details(self) -> Self:
        """With all that a CenterInfoFull shows, in six queries however many centers there are."""
        from centers.models import MeetingRoom, Service

        services = Service.objects.filter(is_active=True).select_related("rate", "resource_type")
        rooms = MeetingRoom.objects.on_offer().with_rates()
        return self.prefetch_related(
            Prefetch("rooms", rooms, to_attr="rooms_on_offer"),
            Prefetch("services", services, to_attr="services_on_offer"),
            "opening_hours",
            "images",
            "landmarks",
        )

    def for_user(self, user: Any) -> Self:
        """With `is_favorite`, as this account (or the one of this number) has it."""
        from centers.models import Favorite

        mine = Favorite.objects.filter(user=getattr(user, "pk", user), center=OuterRef("pk"))
        return self.annotate(is_favorite=Exists(mine))


def offers_condition(filters: "SearchFilters | FilterParams") -> Q:
    """Whether a center offers what the filters want: one room that meets all of the room filters,
    and every service."""
    from centers.models import MeetingRoom, Service

    has_room = _has_related(MeetingRoom.objects.on_offer().wanted(filters))
    if not filters.service_ids:
        return Q(has_room)
    services = Service.objects.filter(
        is_active=True,
        resource_type__any_of=filters.service_ids,
        resource_type__is_service=True,
    )
    counted = (
        services.order_by().values("center").annotate(kinds=Count("resource_type", distinct=True))
    )
    return Q(has_room, _has_related(counted.filter(kinds=filters.service_count)))


def _has_related(parts: models.QuerySet[Any, Any]) -> Exists:
    return Exists(parts.filter(center=OuterRef("pk")))


def _squared_chord_expression(vector: geo.UnitVector) -> Any:
    # Products, not POWER: SQLite would call Python for each row.
    x, y, z = (F(name) - value for name, value in zip("xyz", vector, strict=True))
    return ExpressionWrapper(x * x + y * y + z * z, output_field=models.FloatField())
