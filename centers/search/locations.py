"""Finding centers: around a place, by words, in a city, state or country (B9, B10)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.conf import settings

from centers import geo
from centers.models import Center
from centers.querysets import CenterQuerySet, SearchCircle
from centers.records import CenterRecord, CenterRow, load_related
from centers.search import filter_options as options
from centers.search import queries
from centers.search.filters import NO_FILTERS, SearchFilters
from centers.search.queries import QueryShape
from roombook import places
from roombook.db.compiled_queries import CompiledQueryFunction
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


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The centers of a search, and what it can be narrowed by."""

    centers: Sequence[CenterRecord]
    filter_options: options.FilterOptions


def search_locations(
    user: "User",
    *,
    coordinates: geo.Coordinates | None = None,
    radius_in_miles: int | None = None,
    query: str = "",
    filters: SearchFilters = NO_FILTERS,
) -> SearchResult:
    """Centers around a place, with words in their texts, or both; all of them without either.

    With words and no radius the place only measures and orders: somebody in Boston who types
    "Denver" finds Denver.
    """
    words = split_words(query)
    if len(words) > MAX_WORDS:
        raise InvalidRequest({"query": f"A query has at most {MAX_WORDS} words."})
    if radius_in_miles is None and not words:
        radius_in_miles = DEFAULT_RADIUS_MILES
    circle = (
        SearchCircle.around(coordinates, radius_in_miles)
        if coordinates and radius_in_miles
        else None
    )
    search = LocationSearch(
        QueryShape(
            limit=settings.SEARCH_MAX_RESULTS,
            words=len(words),
            has_location=coordinates is not None,
            longitude_ranges=len(circle.longitudes) if circle else 0,
            filters=filters.active_names,
        ),
        {
            **{f"word{index}": word for index, word in enumerate(words)},
            "names": list_phrases(words),
            **(coordinates.vector._asdict() if coordinates else {}),
            **(queries.get_circle_params(circle) if circle else {}),
            **filters.params,
            "user": user.pk,
        },
        # A word of one letter is nearly everywhere.
        is_narrow=circle is not None or any(len(word) > 1 for word in words),
    )
    return _build_result(search.load_first_page(), filters, search)


def list_city_centers(
    user: "User",
    *,
    area: str = "",
    area_type: AreaType = AreaType.STATE,
    city_name: str = "",
    filters: SearchFilters = NO_FILTERS,
) -> SearchResult:
    """Centers of an area, of a city, or of a city in an area; an unknown place has none."""
    if not (area or city_name):
        raise InvalidRequest({"area": "Area or CityName is needed."})
    centers = Center.objects.active()
    if area:
        centers = _filter_by_area(centers, area_type, area)
    if city_name:
        centers = centers.in_city(city_name)
    page = queries.select_rows(centers.meeting(filters).by_rank(), user.pk)
    return _build_result(list(page[: settings.SEARCH_MAX_RESULTS]), filters, AreaSearch(centers))


def split_words(query: str) -> list[str]:
    """The words of a query, made comparable; commas part words as spaces do."""
    return places.fold_text(query.replace(",", " ")).split()


def list_phrases(words: Sequence[str]) -> set[str]:
    """All that some words in a row may be the name of: "new york loft" may speak of New York."""
    return {
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, len(words) + 1)
    }


def _filter_by_area(centers: CenterQuerySet, area_type: AreaType, area: str) -> CenterQuerySet:
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


@dataclass(frozen=True, slots=True)
class LocationSearch:
    """A search as its questions are asked: by statements that are written once."""

    shape: QueryShape
    params: dict[str, Any]
    is_narrow: bool

    def load_first_page(self) -> Sequence[Any]:
        """The rows of the first page, in their order."""
        if self.shape.has_location:
            return self._load_first(queries.load_nearest, queries.load_page)
        called = (
            self._load_first(queries.load_first_matching_names, queries.load_page_matching_names)
            if self.shape.words
            else []
        )
        if len(called) == self.shape.limit:
            return called
        return [*called, *queries.load_page(self.shape, **self.params)][: self.shape.limit]

    def _load_first(
        self, few: CompiledQueryFunction[Any], page: CompiledQueryFunction[Any]
    ) -> Sequence[Any]:
        """The page, if the first few that match fill it, or are all; else asked for as a whole."""
        first = few(self.shape, **self.params)
        found = [row for *row, is_offering in first if is_offering][: self.shape.limit]
        if len(found) == self.shape.limit or len(first) < queries.get_lookahead(self.shape):
            return found
        return page(self.shape, **self.params)

    def load_sample(self) -> Sequence[Any]:
        return options.load_sample(self.shape, **self.params)

    def load_resource_types(self, known: Sequence[int]) -> Sequence[Any]:
        return options.load_resource_types(self.shape, **self.params, known=known)

    def load_neighborhoods(self) -> Sequence[Any]:
        if self.is_narrow:
            return options.find_neighborhoods(
                options.load_one_center_per_neighborhood(self.shape, **self.params),
                lambda left: options.load_listed_neighborhoods(
                    self.shape, **self.params, left=left
                ),
            )
        return options.load_neighborhoods(self.shape, **self.params)


@dataclass(frozen=True, slots=True)
class AreaSearch:
    """The centers of an area, as their options are asked for."""

    centers: CenterQuerySet

    def load_sample(self) -> Sequence[Any]:
        return list(options.select_sample(self.centers))

    def load_resource_types(self, known: Sequence[int]) -> Iterable[Any]:
        return options.select_resource_types(self.centers, known)

    def load_neighborhoods(self) -> Iterable[Any]:
        one_each = options.select_one_center_per_neighborhood(self.centers)
        return options.find_neighborhoods(
            one_each, lambda left: options.select_listed_neighborhoods(self.centers, left)
        )


def _build_result(
    page: Sequence[Any], filters: SearchFilters, matches: options.MatchingCenters
) -> SearchResult:
    """The centers of these rows, and the filters on offer among all that match before filters."""
    centers = []
    for *row, squared_chord in page:
        center = CenterRecord(CenterRow._make(row))
        if squared_chord is not None:
            center.distance_from_query = round(geo.miles_from_squared_chord(squared_chord), 2)
        centers.append(center)
    load_related(centers)
    if filters.active_names or len(centers) == settings.SEARCH_MAX_RESULTS:
        on_offer = options.collect_from_matches(matches, centers)
    else:
        # Neither a filter nor the limit left one out.
        on_offer = options.collect_from_centers(centers)
    for center in centers:
        center.meeting_rooms = [
            room for room in center.rooms_on_offer if filters.matches_room(room)
        ]
    return SearchResult(centers, on_offer)
