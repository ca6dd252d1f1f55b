"""Finding centers: around a place, by words, in a city, state or country (B9, B10)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db.models import Exists, FloatField, OuterRef, Q, Value

from centers import geo
from centers.models import Center, MeetingRoom, Neighborhood, ResourceType, Service
from centers.querysets import CenterQuerySet, Circle
from centers.shown import CENTER_COLUMNS, CenterRow, ShownCenter, ShownRoom, furnished
from roombook import places
from roombook.errors import InvalidRequest
from roombook.prepared import number, numbers, prepared, real, text, texts, written_once

if TYPE_CHECKING:
    from django.db.models import QuerySet

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

    @property
    def names(self) -> tuple[str, ...]:
        """Which filters there are; a capacity of 0 is one, an empty list or false is none."""
        wishes = ((name, getattr(self, name)) for name in FILTER_PARAMS)
        return tuple(
            name for name, wish in wishes if not (wish is None or wish is False or wish == NOBODY)
        )

    @property
    def service_count(self) -> int:
        return len(self.service_ids)

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


class ShownType(NamedTuple):
    """A kind of room or of service."""

    id: int
    name: str
    is_service: bool
    position: int
    internal: bool


class ShownNeighborhood(NamedTuple):
    id: int
    original_name: str
    name: str
    city: str
    state: str
    custom_title: str
    landing_page_content: str
    coworking_landing_page_content: str


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The filters on offer."""

    room_types: Sequence[ShownType]
    services: Sequence[ShownType]
    neighborhoods: Sequence[ShownNeighborhood]


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
    if radius_in_miles is None and not words:
        radius_in_miles = DEFAULT_RADIUS_MILES
    circle = Circle.around(place, radius_in_miles) if place and radius_in_miles else None
    how = How(
        limit=settings.SEARCH_MAX_RESULTS,
        words=len(words),
        has_place=place is not None,
        ranges=len(circle.longitudes) if circle else 0,
        filters=filters.names,
    )
    asked = {
        **{f"word{index}": word for index, word in enumerate(words)},
        "names": runs_of(words),
        **(place.vector._asdict() if place else {}),
        **(_bounds(circle) if circle else {}),
        **{name: getattr(filters, name) for name in FILTER_PARAMS},
        "service_count": filters.service_count,
        "user": user.pk,
    }
    return _found(
        _first(how, asked, place, radius_in_miles),
        filters,
        how,
        matched=lambda: some_matching(how, **asked),
        types=lambda: types_matching(how, **asked),
        neighborhoods=lambda: neighborhoods_matching(how, **asked),
    )


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
    how = How(limit=settings.SEARCH_MAX_RESULTS, filters=filters.names)
    return _found(
        list(_page(matching.meeting(filters).by_rank(), user.pk, how)),
        filters,
        how,
        matched=lambda: list(some_of(matching)),
        types=lambda: list(types_of(matching)),
        neighborhoods=lambda: list(neighborhoods_of(matching)),
    )


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


# --- What is found -------------------------------------------------------------------------------


class How(NamedTuple):
    """What the words of a search's statements depend on; all the rest is bound to them."""

    limit: int
    words: int = 0
    has_place: bool = False
    ranges: int = 0  # of longitudes, around the circle; none without one
    filters: tuple[str, ...] = ()


# A large circle is asked from its middle outwards: where the nearest fill a page, they are all that
# a page shows, and the many behind them need not be sorted.
SMALLER_CIRCLES = (25, 100)


def _first(
    how: How, asked: dict[str, Any], place: geo.Place | None, miles: int | None
) -> Sequence[Any]:
    """The rows of the first page, in their order."""
    if place is None:
        exact = page_called(how, **asked) if how.words else []
        if len(exact) == how.limit:
            return exact
        return [*exact, *page(how, **asked)][: how.limit]
    rows: Sequence[Any] = ()
    for smaller in SMALLER_CIRCLES:
        if miles is None or smaller * 4 > miles:
            break
        circle = Circle.around(place, smaller)
        rows = page(how._replace(ranges=len(circle.longitudes)), **{**asked, **_bounds(circle)})
        if len(rows) >= how.limit:
            return rows
    return page(how, **asked)


def _found(
    page: Sequence[Any],
    filters: Filters,
    how: How,
    *,
    matched: Callable[[], Sequence[Any]],
    types: Callable[[], Sequence[Any]],
    neighborhoods: Callable[[], Sequence[Any]],
) -> Found:
    """The centers of these rows, and the filters on offer among all that match before filters.

    Where no filter and no limit left one out, the matching centers are these, and their rows tell
    the options. Else those of a FEW are asked for by their ids (`matched`), those of more by what
    they match (`types`, `neighborhoods`): among many centers each kind is met soon.
    """
    centers = []
    for *row, squared_chord in page:
        center = ShownCenter(CenterRow._make(row))
        if squared_chord is not None:
            center.distance_from_query = round(geo.miles_of(squared_chord), 2)
        centers.append(center)
    furnished(centers)
    if not how.filters and len(centers) < how.limit:
        around = {center.row.neighborhood_id for center in centers}
        options = _options_by_id(_kinds(centers), around)
    elif len(few := matched()) <= FEW:
        kinds = {kind for (kind,) in kinds_among(centers=[pk for pk, _ in few])}
        options = _options_by_id(kinds, {neighborhood for _, neighborhood in few})
    else:
        options = _options(types(), neighborhoods())
    for center in centers:
        center.meeting_rooms = [room for room in center.rooms_on_offer if filters.want(room)]
    return Found(centers, options)


def _kinds(centers: Iterable[ShownCenter]) -> set[int]:
    rooms = {room.resource_type_id for each in centers for room in each.rooms_on_offer}
    return rooms.union(s.resource_type_id for c in centers for s in c.services_on_offer)


def _options_by_id(kinds: Iterable[int], neighborhoods: set[int | None]) -> FilterOptions:
    return _options(
        types_by_id(types=list(kinds)),
        neighborhoods_by_id(neighborhoods=[pk for pk in neighborhoods if pk is not None]),
    )


def _options(types: Iterable[Any], neighborhoods: Iterable[Any]) -> FilterOptions:
    kinds = [ShownType._make(row) for row in types]
    return FilterOptions(
        room_types=[kind for kind in kinds if not kind.is_service],
        services=[kind for kind in kinds if kind.is_service],
        neighborhoods=[ShownNeighborhood._make(row) for row in neighborhoods],
    )


# --- The questions -------------------------------------------------------------------------------

NOBODY: frozenset[int] = frozenset()
FILTER_PARAMS: dict[str, Any] = {
    "capacity_low": number("capacity_low"),
    "capacity_high": number("capacity_high"),
    "resource_type_ids": numbers("resource_type_ids"),
    "service_ids": numbers("service_ids"),
    "neighborhood_ids": numbers("neighborhood_ids"),
    "only_after_hours": True,
    "only_realtime": True,
}


class FiltersToCome:
    """Filters of which it is known which there are, but not yet their values."""

    capacity_low = capacity_high = None
    resource_type_ids = service_ids = neighborhood_ids = ()
    only_after_hours = only_realtime = False
    service_count = number("service_count")

    def __init__(self, names: Sequence[str]) -> None:
        vars(self).update({name: FILTER_PARAMS[name] for name in names})


VECTOR = geo.Vector(real("x"), real("y"), real("z"))


def _bounds(circle: Circle) -> dict[str, float]:
    bounds = {"south": circle.south, "north": circle.north, "chord": circle.squared_chord}
    for index, (west, east) in enumerate(circle.longitudes):
        bounds |= {f"west{index}": west, f"east{index}": east}
    return bounds


def _matching(how: How) -> CenterQuerySet:
    """What matches place and words."""
    found = Center.objects.listed().containing([text(f"word{n}") for n in range(how.words)])
    if how.ranges:
        ranges = [(real(f"west{n}"), real(f"east{n}")) for n in range(how.ranges)]
        found = found.within(Circle(real("south"), real("north"), ranges, VECTOR, real("chord")))
    return found


def _page(centers: CenterQuerySet, user: Any, how: How) -> "QuerySet[Any, Any]":
    """The rows that `_found` takes."""
    if not how.has_place:
        unmeasured: Any = Value(None, output_field=FloatField())
        centers = centers.annotate(squared_chord=unmeasured)  # type: ignore[no-redef]
    columns = (*CENTER_COLUMNS, "squared_chord")
    return centers.for_user(user).values_list(*columns)[: how.limit]


# Planned each time: a plan for any circle would read all rooms for the few of a small one.
@written_once
def page(how: How) -> "QuerySet[Any, Any]":
    matching = _matching(how).meeting(FiltersToCome(how.filters))
    if how.has_place:
        ordered = matching.by_distance(VECTOR)
    else:
        ordered = (matching.not_called(texts("names")) if how.words else matching).by_rank()
    return _page(ordered, number("user"), how)


@written_once
def page_called(how: How) -> "QuerySet[Any, Any]":
    """Those that come first where there is no place: their city, code or name is what is asked."""
    matching = _matching(how).meeting(FiltersToCome(how.filters)).called(texts("names"))
    return _page(matching.by_rank(), number("user"), how)


def types_of(matching: CenterQuerySet) -> "QuerySet[Any, Any]":
    """The kinds of rooms and services of these centers; internal ones are for staff.

    Asked kind by kind, so that the first room of a kind is enough.
    """
    ids = matching.order_by().values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(resource_type=OuterRef("pk"), center__in=ids)
    services = Service.objects.filter(
        is_active=True, resource_type=OuterRef("pk"), center__in=ids
    ).order_by()
    types = ResourceType.objects.filter(
        Q(Q(is_service=False), Exists(rooms)) | Q(Q(is_service=True), Exists(services)),
        internal=False,
    )
    return types.order_by("position", "name", "pk").values_list(*ShownType._fields)


def neighborhoods_of(matching: CenterQuerySet) -> "QuerySet[Any, Any]":
    ids = matching.order_by().values("neighborhood")
    rows = Neighborhood.objects.filter(pk__in=ids)
    return rows.order_by("name", "pk").values_list(*ShownNeighborhood._fields)


# So many centers are asked about by their ids.
FEW = 500


def some_of(matching: CenterQuerySet) -> "QuerySet[Any, Any]":
    """Matching centers with their neighborhoods, one more than a FEW at most."""
    return matching.order_by().values_list("pk", "neighborhood_id")[: FEW + 1]


@written_once
def some_matching(how: How) -> "QuerySet[Any, Any]":
    return some_of(_matching(how))


@written_once
def kinds_among() -> "QuerySet[Any, Any]":
    """The kinds of rooms and services that these centers have."""
    rooms = MeetingRoom.objects.on_offer().filter(center__any_of=numbers("centers"))
    services = Service.objects.filter(is_active=True, center__any_of=numbers("centers"))
    kinds = services.order_by().values_list("resource_type_id")
    return rooms.values_list("resource_type_id").union(kinds)


@written_once
def types_matching(how: How) -> "QuerySet[Any, Any]":
    return types_of(_matching(how))


@written_once
def neighborhoods_matching(how: How) -> "QuerySet[Any, Any]":
    return neighborhoods_of(_matching(how))


@prepared
def types_by_id() -> "QuerySet[Any, Any]":
    rows = ResourceType.objects.filter(pk__any_of=numbers("types"), internal=False)
    return rows.order_by("position", "name", "pk").values_list(*ShownType._fields)


@prepared
def neighborhoods_by_id() -> "QuerySet[Any, Any]":
    rows = Neighborhood.objects.filter(pk__any_of=numbers("neighborhoods"))
    return rows.order_by("name", "pk").values_list(*ShownNeighborhood._fields)
