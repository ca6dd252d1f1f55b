"""Finding centers: around a place, by words, in a city, state or country (B9, B10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.conf import settings

from centers import geo
from centers.models import Center, MeetingRoom, Neighborhood, ResourceType, Service
from centers.querysets import CenterQuerySet
from centers.shown import CENTER_COLUMNS, CenterRow, ShownCenter, ShownRoom, furnished
from roombook import places
from roombook.errors import InvalidRequest

if TYPE_CHECKING:
    from accounts.models import User

DEFAULT_RADIUS_MILES = 25
MAX_WORDS = 8


class AreaType(StrEnum):
    """The contract's AreaTypes."""

    STATE = "State"
    COUNTRY = "Country"
    CITY = "City"
    NEIGHBORHOOD = "Neighborhood"
    POSTAL_CODE = "PostalCode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a customer wants of a center and its room; the default wants nothing."""

    capacity_low: int | None = None
    capacity_high: int | None = None
    resource_type_ids: frozenset[int] = frozenset()
    service_ids: frozenset[int] = frozenset()
    neighborhood_ids: frozenset[int] = frozenset()
    only_after_hours: bool = False
    only_realtime: bool = False

    def __post_init__(self) -> None:
        low, high = self.capacity_low, self.capacity_high
        if low is not None and high is not None and low > high:
            raise InvalidRequest({"filters.capacity_low": "This is above CapacityHigh."})

    def want(self, room: ShownRoom) -> bool:
        """Whether one room meets all the room filters (MeetingRoom.objects.wanted, in memory)."""
        low, high = self.capacity_low, self.capacity_high
        return (
            (low is None or room.capacity >= low)
            and (high is None or room.capacity <= high)
            and (not self.resource_type_ids or room.resource_type_id in self.resource_type_ids)
            and (not self.only_realtime or room.is_live_inventory)
        )


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The filters on offer."""

    room_types: Sequence[ResourceType]
    services: Sequence[ResourceType]
    neighborhoods: Sequence[Neighborhood]


@dataclass(frozen=True, slots=True)
class Found:
    """The centers of a search, and what it can be narrowed by."""

    centers: Sequence[ShownCenter]
    filter_options: FilterOptions


def search_locations(
    user: "User",
    *,
    place: geo.Place | None = None,
    radius_in_miles: int | None = None,
    query: str = "",
    filters: Filters = NO_FILTERS,
) -> Found:
    """Centers around a place, with words in their texts, or both; all of them without either.

    With words and no radius the place only measures and orders: somebody in Boston who types
    "Denver" finds Denver.
    """
    words = words_of(query)
    if len(words) > MAX_WORDS:
        raise InvalidRequest({"query": f"A query has at most {MAX_WORDS} words."})
    matching = Center.objects.listed().containing(words)
    if place is None:
        return _found(user, matching, matching.by_rank(runs_of(words)), filters)
    if radius_in_miles is None and not words:
        radius_in_miles = DEFAULT_RADIUS_MILES
    if radius_in_miles is not None:
        matching = matching.within(place, radius_in_miles)
    return _found(user, matching, matching.by_distance(place), filters, place)


def city_centers(
    user: "User",
    *,
    area: str = "",
    area_type: AreaType = AreaType.STATE,
    city_name: str = "",
    filters: Filters = NO_FILTERS,
) -> Found:
    """Centers of an area, of a city, or of a city in an area; an unknown place has none."""
    if not (area or city_name):
        raise InvalidRequest({"area": "Area or CityName is needed."})
    matching = Center.objects.listed()
    if area:
        matching = _in_area(matching, area_type, area)
    if city_name:
        matching = matching.in_city(city_name)
    return _found(user, matching, matching.by_rank(), filters)


def words_of(query: str) -> list[str]:
    """The words of a query, made comparable; commas part words as spaces do."""
    return places.folded(query.replace(",", " ")).split()


def runs_of(words: Sequence[str]) -> set[str]:
    """All that some words in a row may be the name of: "new york loft" may speak of New York."""
    return {
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, len(words) + 1)
    }


def _in_area(centers: CenterQuerySet, area_type: AreaType, area: str) -> CenterQuerySet:
    match area_type:
        case AreaType.STATE:
            return centers.in_state(area)
        case AreaType.COUNTRY:
            return centers.in_country(area)
        case AreaType.CITY:
            return centers.in_city(area)
        case AreaType.NEIGHBORHOOD:
            return centers.in_neighborhood(area)
        case AreaType.POSTAL_CODE:
            return centers.in_postal_code(area)


def _found(
    user: "User",
    matching: CenterQuerySet,
    ordered: CenterQuerySet,
    filters: Filters,
    place: geo.Place | None = None,
) -> Found:
    columns = [*CENTER_COLUMNS, *(["squared_chord"] if place else [])]
    rows = ordered.meeting(filters).for_user(user).values_list(*columns)
    centers = []
    for row in rows[: settings.SEARCH_MAX_RESULTS]:
        center = ShownCenter(CenterRow._make(row[: len(CENTER_COLUMNS)]))
        if place is not None and row[-1] is not None:
            center.distance_from_query = round(geo.miles_of(row[-1]), 2)
        centers.append(center)
    for center in furnished(centers):
        center.meeting_rooms = [room for room in center.rooms_on_offer if filters.want(room)]
    return Found(centers, options_of(matching))


def options_of(matching: CenterQuerySet) -> FilterOptions:
    """The room types, services and neighborhoods of all matching centers, whatever the filters:
    so that a choice can be undone. Internal types are for staff."""
    ids = matching.order_by().values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(center__in=ids)
    services = Service.objects.filter(is_active=True, center__in=ids)
    types = ResourceType.objects.filter(internal=False).order_by("position", "name", "pk")
    return FilterOptions(
        room_types=list(types.filter(is_service=False, pk__in=rooms.values("resource_type"))),
        services=list(
            types.filter(is_service=True, pk__in=services.order_by().values("resource_type"))
        ),
        neighborhoods=list(
            Neighborhood.objects.filter(pk__in=matching.order_by().values("neighborhood")).order_by(
                "name", "pk"
            )
        ),
    )
