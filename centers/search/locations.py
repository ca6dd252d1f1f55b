"""The two searches: around a location or by words (B9), and by area or city (B10)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.conf import settings

from accounts.models import User
from centers import geo
from centers.models import Favorite, Neighborhood
from centers.querysets import SearchCircle
from centers.records import CenterRecord, load_related
from centers.search import filter_options
from centers.search.filter_options import FilterOptions
from centers.search.filters import NO_FILTERS, SearchFilters
from centers.search.queries import SearchQuery, get_circle_conditions
from centers.search.words import MAX_WORDS, list_names, replace_part_of_country, split_words
from roombook import places
from roombook.db import replica
from roombook.errors import InvalidRequest

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


def _search(conditions: dict[str, Any], filters: SearchFilters, user: "User") -> SearchResult:
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
        options = filter_options.collect_from_search(search)
    else:
        # Neither a filter nor the limit excluded a center.
        options = filter_options.collect_from_centers(centers)
    for center in centers:
        center.meeting_rooms = filters.select_rooms(center.rooms_on_offer)
    return SearchResult(centers, options)
