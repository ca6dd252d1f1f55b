"""Finding centers: around a place, by words, in a city, state or country (B9, B10)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.conf import settings

from centers import geo
from centers.models import Center
from centers.querysets import CenterQuerySet, Circle
from centers.records import CenterRow, ShownCenter, furnished
from centers.search import filter_options as options
from centers.search import queries
from centers.search.filters import NO_FILTERS, Filters
from centers.search.queries import How
from roombook import places
from roombook.db.compiled_queries import Prepared
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
class Found:
    """The centers of a search, and what it can be narrowed by."""

    centers: Sequence[ShownCenter]
    filter_options: options.FilterOptions


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
    search = Search(
        How(
            limit=settings.SEARCH_MAX_RESULTS,
            words=len(words),
            has_place=place is not None,
            ranges=len(circle.longitudes) if circle else 0,
            filters=filters.names,
        ),
        {
            **{f"word{index}": word for index, word in enumerate(words)},
            "names": runs_of(words),
            **(place.vector._asdict() if place else {}),
            **(queries.bounds_of(circle) if circle else {}),
            **filters.values,
            "user": user.pk,
        },
        # A word of one letter is nearly everywhere.
        is_narrow=circle is not None or any(len(word) > 1 for word in words),
    )
    return _found(search.first_page(), filters, search)


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
    centers = Center.objects.active()
    if area:
        centers = _in_area(centers, area_type, area)
    if city_name:
        centers = centers.in_city(city_name)
    page = queries.rows_of(centers.meeting(filters).by_rank(), user.pk)
    return _found(list(page[: settings.SEARCH_MAX_RESULTS]), filters, Area(centers))


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


@dataclass(frozen=True, slots=True)
class Search:
    """A search as its questions are asked: by statements that are written once."""

    how: How
    asked: dict[str, Any]
    is_narrow: bool

    def first_page(self) -> Sequence[Any]:
        """The rows of the first page, in their order."""
        if self.how.has_place:
            return self._first(queries.nearest, queries.page)
        called = self._first(queries.first_called, queries.page_called) if self.how.words else []
        if len(called) == self.how.limit:
            return called
        return [*called, *queries.page(self.how, **self.asked)][: self.how.limit]

    def _first(self, few: Prepared[Any], page: Prepared[Any]) -> Sequence[Any]:
        """The page, if the first few that match fill it, or are all; else asked for as a whole."""
        first = few(self.how, **self.asked)
        found = [row for *row, is_offering in first if is_offering][: self.how.limit]
        if len(found) == self.how.limit or len(first) < queries.reach(self.how):
            return found
        return page(self.how, **self.asked)

    def some(self) -> Sequence[Any]:
        return options.some_matching(self.how, **self.asked)

    def types(self, known: Sequence[int]) -> Sequence[Any]:
        return options.types_matching(self.how, **self.asked, known=known)

    def neighborhoods(self) -> Sequence[Any]:
        if self.is_narrow:
            return options.neighborhoods_near(
                options.one_each_matching(self.how, **self.asked),
                lambda left: options.left_matching(self.how, **self.asked, left=left),
            )
        return options.neighborhoods_matching(self.how, **self.asked)


@dataclass(frozen=True, slots=True)
class Area:
    """The centers of an area, as their options are asked for."""

    centers: CenterQuerySet

    def some(self) -> Sequence[Any]:
        return list(options.some_of(self.centers))

    def types(self, known: Sequence[int]) -> Iterable[Any]:
        return options.types_of(self.centers, known)

    def neighborhoods(self) -> Iterable[Any]:
        one_each = options.one_each_of(self.centers)
        return options.neighborhoods_near(
            one_each, lambda left: options.left_of(self.centers, left)
        )


def _found(page: Sequence[Any], filters: Filters, matches: options.Matches) -> Found:
    """The centers of these rows, and the filters on offer among all that match before filters."""
    centers = []
    for *row, squared_chord in page:
        center = ShownCenter(CenterRow._make(row))
        if squared_chord is not None:
            center.distance_from_query = round(geo.miles_of(squared_chord), 2)
        centers.append(center)
    furnished(centers)
    if filters.names or len(centers) == settings.SEARCH_MAX_RESULTS:
        on_offer = options.among(matches, centers)
    else:
        # Neither a filter nor the limit left one out.
        on_offer = options.of_all(centers)
    for center in centers:
        center.meeting_rooms = [room for room in center.rooms_on_offer if filters.want(room)]
    return Found(centers, on_offer)
