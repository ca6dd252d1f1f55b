"""The searches: around a location or by words (B9), and by area or city (B10)."""

import operator
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from django.conf import settings
from django.db.models import Count, Exists, FloatField, OuterRef, Q, QuerySet, Value

from accounts.models import User
from centers import geo
from centers.geo import UnitVector
from centers.models import Center, Favorite, MeetingRoom, Neighborhood, ResourceType, Service
from centers.querysets import CenterQuerySet, SearchCircle
from centers.records import CENTER_COLUMNS, CenterRecord, RoomRecord, load_related
from roombook import places
from roombook.db import replica
from roombook.db.compiled_queries import (
    Row,
    RowQuerySet,
    compiled_query,
    float_param,
    int_list_param,
    int_param,
    text_list_param,
    text_param,
)
from roombook.errors import InvalidRequest

# --- The words of a search -----------------------------------------------------------------------

MAX_WORDS = 30
# E-mails show the address of a center after this label.
LABEL = re.compile(r"\W*where\s*[:\t\n]", re.IGNORECASE)
# New England and New South Wales are elsewhere.
PART_OF_UNITED_KINGDOM = re.compile(
    r"(?<! new)(?<! new south) (england|scotland|wales|northern ireland)(?= )"
)


def split_words(query: str) -> list[str]:
    """The normalized words of a query: what is between spaces and punctuation, each once.

    Splitting further than necessary is harmless, because a word may be a part of a center's word.
    """
    if not query:
        return []
    text = places.join_numbers(_fold(query))
    if not text.replace(" ", "").isalnum():
        spaced = "".join(each if _is_in_word(each) else " " for each in text)
        # Without any word, a query of punctuation would find all centers.
        text = spaced if spaced.strip() else text
    return list(dict.fromkeys(map(places.shorten_zip_code, text.split())))


def _fold(query: str) -> str:
    return places.fold_text(LABEL.sub("", query, count=1).replace(",", " "))


def _is_in_word(letter: str) -> bool:
    # Not isalnum() alone: the vowels of Hindi and Thai are marks.
    return unicodedata.category(letter)[0] in "LMNC"


def list_names(query: str, words: Sequence[str]) -> set[str]:
    """All phrases of a query that may be a city, a name or a postal code, as they are stored.

    "new york loft" may name the city New York, and "st. louis." the city with this punctuation.
    """
    phrases = {
        " ".join(each[start:end])
        for each in {tuple(words), tuple(_fold(query).split())}
        for start in range(len(each))
        for end in range(start + 1, len(each) + 1)
    }
    codes = (places.list_postal_codes(word) for word in words if any(map(str.isdigit, word)))
    return phrases.union((each.strip(string.punctuation) for each in phrases), *codes)


def replace_part_of_country(words: Sequence[str]) -> list[str]:
    """The words with the United Kingdom instead of a part of it; empty if nothing else is named.

    Addresses there name no country but the whole one, and people write "London, England".
    """
    text = f" {' '.join(words)} "
    rest = PART_OF_UNITED_KINGDOM.sub("", text)
    return [*rest.split(), "united kingdom"] if rest.strip() and rest != text else []


# --- Filters (B9.4), those of rooms for SQL and for memory ---------------------------------------

# The filters that narrow a search, by name, each with its value or with the parameter of a compiled
# query. `service_count` comes with `service_ids`.
FilterParams: TypeAlias = Mapping[str, Any]


class RoomFilter(NamedTuple):
    """One filter on an attribute of a room: as a lookup in SQL, and as a test in memory."""

    attribute: str
    lookup: str
    is_met: Callable[[Any, Any], bool]


def _is_among(value: int, allowed: frozenset[int]) -> bool:
    return value in allowed


ROOM_FILTERS = {
    "capacity_low": RoomFilter("capacity", "gte", operator.ge),
    "capacity_high": RoomFilter("capacity", "lte", operator.le),
    "resource_type_ids": RoomFilter("resource_type_id", "any_of", _is_among),
    "only_realtime": RoomFilter("is_live_inventory", "exact", operator.eq),
}
CENTER_LOOKUPS = {
    "neighborhood_ids": "neighborhood__any_of",
    "only_after_hours": "is_after_hours_support_enabled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """What a customer wants of a center and its rooms. By default, nothing is filtered."""

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

    def get_params(self) -> dict[str, object]:
        """The filters that narrow the search: a capacity of 0 does, an empty list does not."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        params = {
            name: value
            for name, value in values.items()
            if not (value is None or value is False or value == frozenset())
        }
        if self.service_ids:
            params["service_count"] = len(self.service_ids)
        return params

    def select_rooms(self, rooms: Iterable[RoomRecord]) -> list[RoomRecord]:
        """The rooms that meet every room filter."""
        params = self.get_params()
        wanted = [(each, params[name]) for name, each in ROOM_FILTERS.items() if name in params]
        return [
            room
            for room in rooms
            if all(each.is_met(getattr(room, each.attribute), value) for each, value in wanted)
        ]


NO_FILTERS = SearchFilters()


# --- Conditions for the database -----------------------------------------------------------------


def has_bookable_room(params: FilterParams) -> Exists:
    """Whether a center has an active, priced room that meets every room filter."""
    conditions = {
        f"{each.attribute}__{each.lookup}": params[name]
        for name, each in ROOM_FILTERS.items()
        if name in params
    }
    return Exists(MeetingRoom.objects.on_offer().filter(center=OuterRef("pk"), **conditions))


def meets_center_filters(params: FilterParams) -> Q:
    """Whether a center meets the filters on its own columns."""
    return Q(**{lookup: params[name] for name, lookup in CENTER_LOOKUPS.items() if name in params})


def offers_what_is_wanted(params: FilterParams) -> Q:
    """Whether a center has one room that meets all room filters, and offers every service."""
    has_room = has_bookable_room(params)
    if "service_ids" not in params:
        return Q(has_room)
    services = Service.objects.filter(
        is_active=True,
        center=OuterRef("pk"),
        resource_type__any_of=params["service_ids"],
        resource_type__is_service=True,
    )
    by_center = services.order_by().values("center")
    counted = by_center.annotate(type_count=Count("resource_type", distinct=True))
    return Q(has_room, Exists(counted.filter(type_count=params["service_count"])))


# --- The statements of a search, compiled once for each combination of conditions ----------------

# The conditions of a search by name: with their values, or with the parameters of a compiled query.
Conditions: TypeAlias = Mapping[str, Any]

WORDS = tuple(f"word{number}" for number in range(MAX_WORDS))
# A circle has a second range of longitude if it lies across the date line.
LONGITUDES = (("west0", "east0"), ("west1", "east1"))
LOOKUPS = {
    "country": "country",
    "city": "city_folded",
    "area_city": "city_folded",
    "area_neighborhoods": "neighborhood__any_of",
    "area_postal_codes": "postal_code_folded__any_of",
}
PARAMS: Conditions = {
    **{name: float_param(name) for name in ("x", "y", "z", "south", "north", "chord")},
    **{name: float_param(name) for ends in LONGITUDES for name in ends},
    **{name: text_param(name) for name in (*WORDS, "state", "country", "city", "area_city")},
    **{name: text_list_param(name) for name in ("names", "area_postal_codes")},
    **{name: int_list_param(name) for name in ("area_neighborhoods", "neighborhood_ids")},
    **{name: int_list_param(name) for name in ("resource_type_ids", "service_ids")},
    **{name: int_param(name) for name in ("capacity_low", "capacity_high", "service_count")},
    "only_after_hours": True,
    "only_realtime": True,
}


def get_circle_conditions(circle: SearchCircle) -> dict[str, float]:
    conditions = {"south": circle.south, "north": circle.north, "chord": circle.squared_chord}
    for names, ends in zip(LONGITUDES, circle.longitudes, strict=False):
        conditions |= zip(names, ends, strict=True)
    return conditions


def filter_matching(conditions: Conditions) -> CenterQuerySet:
    """Active centers that match location, words, area and city, whatever the filters are."""
    words = [conditions[name] for name in WORDS if name in conditions]
    centers = Center.objects.active().containing_words(words)
    if "chord" in conditions:
        longitudes = [
            (conditions[west], conditions[east]) for west, east in LONGITUDES if west in conditions
        ]
        south, north, chord = (conditions[name] for name in ("south", "north", "chord"))
        circle = SearchCircle(south, north, longitudes, _get_vector(conditions), chord)
        centers = centers.within(circle)
    if "state" in conditions:
        state = conditions["state"]
        centers = centers.filter(Q(state_folded=state) | Q(state_name_folded=state))
    for name, lookup in LOOKUPS.items():
        if name in conditions:
            centers = centers.filter(**{lookup: conditions[name]})
    return centers


def _get_vector(conditions: Conditions) -> UnitVector:
    return UnitVector(*(conditions[name] for name in UnitVector._fields))


def filter_listed(conditions: Conditions) -> CenterQuerySet:
    """The matching centers that customers find without filters: those with a bookable room."""
    return filter_matching(conditions).filter(has_bookable_room({})).order_by()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search. Its SQL depends on which conditions it has, and not on their values."""

    conditions: dict[str, Any]
    limit: int
    user_id: int

    def load_first_page(self) -> list[Row]:
        """The rows of the first page, in their order.

        Without a location, centers whose city, postal code or name is in the search come first.
        """
        rows = self._load(has_name=True) if "names" in self.conditions else []
        if len(rows) < self.limit:
            rows += self._load(has_name=False)
        return rows[: self.limit]

    def _load(self, *, has_name: bool) -> list[Row]:
        shape = (self.limit, has_name, *self.conditions)
        return load_page(*shape, user=self.user_id, **self.conditions)


# The plan depends on the values: a plan kept for any circle would read all rooms, however small the
# circle. So the statement is compiled once, but planned each time.
@compiled_query(keep_plan=False)
def load_page(limit: int, has_name: bool, *names: str) -> RowQuerySet:  # noqa: FBT001 (of a key)
    """Rows of CENTER_COLUMNS, and the squared chord to the location, if any."""
    conditions = {name: PARAMS[name] for name in names}
    centers = filter_matching(conditions).filter(meets_center_filters(conditions))
    centers = centers.filter(offers_what_is_wanted(conditions))
    centers = centers.annotate(is_favorite=Favorite.objects.exists_for(int_param("user")))
    if "x" in conditions:
        centers = centers.by_distance(_get_vector(conditions))
    else:
        centers = centers.annotate(squared_chord=Value(None, output_field=FloatField()))
        if has_name:
            centers = centers.matching_names(conditions["names"]).by_rank_unindexed()
        elif "names" in conditions:
            centers = centers.not_matching_names(conditions["names"]).by_rank()
        else:
            centers = centers.by_rank()
    return centers.values_list(*CENTER_COLUMNS, "squared_chord")[:limit]


# --- The filters that are offered (B9.8): those that the matches have values for ------------------


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The filters that are offered for a search."""

    room_types: Sequence[ResourceType] = ()
    services: Sequence[ResourceType] = ()
    neighborhoods: Sequence[Neighborhood] = ()


def collect_from_centers(centers: Sequence[CenterRecord]) -> FilterOptions:
    """The options of a search that found exactly these centers."""
    types = {room.resource_type_id for center in centers for room in center.rooms_on_offer}
    types |= {each.resource_type_id for center in centers for each in center.services_on_offer}
    neighborhoods = {center.neighborhood_id for center in centers} - {None}
    return _build_options(
        load_resource_types(types=list(types)),
        load_neighborhoods(neighborhoods=list(neighborhoods)),
    )


def collect_from_search(search: SearchQuery) -> FilterOptions:
    """The options of all centers that match a search, of which only some are listed."""
    listed = filter_listed(search.conditions)
    ids = listed.values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(resource_type=OuterRef("pk"), center__in=ids)
    services = Service.objects.filter(
        is_active=True, resource_type=OuterRef("pk"), center__in=ids
    ).order_by()
    # Each type is checked on its own, so that its first room is enough.
    types = ResourceType.objects.filter(
        Q(Q(is_service=False), Exists(rooms)) | Q(Q(is_service=True), Exists(services))
    )
    neighborhoods = Neighborhood.objects.filter(pk__in=listed.values("neighborhood"))
    return _build_options(_select_resource_types(types), _select_neighborhoods(neighborhoods))


def _build_options(
    types: Iterable[ResourceType], neighborhoods: Iterable[Neighborhood]
) -> FilterOptions:
    found = list(types)
    return FilterOptions(
        room_types=[each for each in found if not each.is_service],
        services=[each for each in found if each.is_service],
        neighborhoods=list(neighborhoods),
    )


@compiled_query(keep_plan=True)
def load_resource_types() -> QuerySet[ResourceType]:
    types = ResourceType.objects.filter(pk__any_of=int_list_param("types"))
    return _select_resource_types(types)


@compiled_query(keep_plan=True)
def load_neighborhoods() -> QuerySet[Neighborhood]:
    ids = int_list_param("neighborhoods")
    return _select_neighborhoods(Neighborhood.objects.filter(pk__any_of=ids))


def _select_resource_types(types: QuerySet[ResourceType]) -> QuerySet[ResourceType]:
    """Internal types are for staff only."""
    return types.filter(internal=False).order_by("position", "name", "pk")


def _select_neighborhoods(neighborhoods: QuerySet[Neighborhood]) -> QuerySet[Neighborhood]:
    return neighborhoods.order_by("name", "pk")


# --- The two searches ----------------------------------------------------------------------------

DEFAULT_RADIUS_MILES = 25


class AreaType(StrEnum):
    """The contract's AreaTypes."""

    STATE = "State"
    COUNTRY = "Country"
    CITY = "City"
    NEIGHBORHOOD = "Neighborhood"
    POSTAL_CODE = "PostalCode"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The centers that a search found, and the filters that can narrow it."""

    centers: Sequence[CenterRecord] = ()
    filter_options: FilterOptions = field(default_factory=FilterOptions)


def search_locations(
    user: User,
    *,
    coordinates: geo.Coordinates | None = None,
    radius_in_miles: int | None = None,
    query: str = "",
    filters: SearchFilters = NO_FILTERS,
) -> SearchResult:
    """Find centers around a location, by words in their texts, or both; without either, all.

    If there are words but no radius, the location only sorts the centers: a customer in Boston who
    types "Denver" finds Denver.
    """
    words = split_words(query)
    if len(words) > MAX_WORDS:
        raise InvalidRequest({"query": f"A query has at most {MAX_WORDS} words."})
    if radius_in_miles is None and not words:
        radius_in_miles = DEFAULT_RADIUS_MILES
    circle = None
    if coordinates and radius_in_miles:
        circle = SearchCircle.around(coordinates, radius_in_miles)

    def search(words: Sequence[str]) -> SearchResult:
        conditions = filters.get_params()
        conditions |= {f"word{index}": word for index, word in enumerate(words)}
        if coordinates:
            conditions |= coordinates.vector._asdict()
        elif words:
            conditions["names"] = list_names(query, words)
        if circle:
            conditions |= get_circle_conditions(circle)
        return _search(conditions, filters, user)

    result = search(words)
    if not result.centers and (others := replace_part_of_country(words)):
        result = search(others)
    return result


def list_city_centers(
    user: User,
    *,
    area: str = "",
    area_type: AreaType = AreaType.STATE,
    city_name: str = "",
    filters: SearchFilters = NO_FILTERS,
) -> SearchResult:
    """Find the centers of an area, of a city, or of a city in an area. An unknown area has none."""
    if not (area or city_name):
        raise InvalidRequest({"area": "Area or CityName is needed."})
    conditions = filters.get_params()
    if city_name:
        conditions["city"] = places.fold_text(city_name)
    if area:
        name, value = _get_area_condition(area_type, area)
        if value is None:
            return SearchResult()
        conditions[name] = value
    return _search(conditions, filters, user)


def _get_area_condition(area_type: AreaType, area: str) -> tuple[str, object]:
    """The name of the condition and its value, which is None if the area is unknown."""
    match area_type:
        case AreaType.COUNTRY:
            return "country", places.get_country_code(area) or None
        case AreaType.NEIGHBORHOOD:
            # The table is small, and SQL cannot ignore accents as our normalization does.
            rows = Neighborhood.objects.values_list("pk", "name", "original_name")
            wanted = places.fold_text(area)
            ids = [pk for pk, *names in rows if wanted in map(places.fold_text, names)]
            return "area_neighborhoods", ids or None
        case AreaType.POSTAL_CODE:
            return "area_postal_codes", places.list_postal_codes(area)
        case AreaType.CITY:
            return "area_city", places.fold_text(area)
        case AreaType.STATE:
            return "state", places.fold_text(area)


def _search(conditions: dict[str, Any], filters: SearchFilters, user: User) -> SearchResult:
    search = SearchQuery(conditions, settings.SEARCH_MAX_RESULTS, user.pk)
    result = _load_result(search, filters)
    if replica.is_configured():
        # The account may just have changed its favorites.
        ids = [center.id for center in result.centers]
        favorites = Favorite.objects.filter(user=user, center__in=ids)
        favorite_ids = set(favorites.values_list("center", flat=True))
        for center in result.centers:
            center.is_favorite = center.id in favorite_ids
    return result


@replica.reads_from_replica
def _load_result(search: SearchQuery, filters: SearchFilters) -> SearchResult:
    """The first page of centers, and the filter options of all centers that match the search."""
    centers = []
    for *row, squared_chord in search.load_first_page():
        center = CenterRecord(*row)
        if squared_chord is not None:
            center.distance_from_query = round(geo.miles_from_squared_chord(squared_chord), 2)
        centers.append(center)
    load_related(centers)
    if filters.get_params() or len(centers) == search.limit:
        options = collect_from_search(search)
    else:
        # Neither a filter nor the limit excluded a center.
        options = collect_from_centers(centers)
    for center in centers:
        center.meeting_rooms = filters.select_rooms(center.rooms_on_offer)
    return SearchResult(centers, options)
