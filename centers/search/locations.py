"""The two searches: around a location or by words (B9), and by area or city (B10)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings

from accounts.models import User
from centers import geo
from centers.models import Favorite, Neighborhood
from centers.querysets import SearchCircle
from centers.records import CenterRecord, load_related
from centers.search import filter_options
from centers.search.filter_options import FilterOptions
from centers.search.filters import NO_FILTERS, SearchFilters
from centers.search.queries import AreaType, QueryShape, SearchQuery, get_circle_params
from centers.search.words import MAX_WORDS, list_names, replace_part_of_country, split_words
from roombook import places
from roombook.db import replica
from roombook.db.compiled_queries import RowQuerySet, compiled_query, int_list_param, int_param
from roombook.errors import InvalidRequest

DEFAULT_RADIUS_MILES = 25


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
    filter_params = filters.get_params()

    def search(words: Sequence[str]) -> SearchResult:
        query_of_words = SearchQuery(
            QueryShape(
                limit=settings.SEARCH_MAX_RESULTS,
                word_count=len(words),
                has_location=coordinates is not None,
                longitude_ranges=len(circle.longitudes) if circle else 0,
                filters=tuple(filter_params),
            ),
            {
                **{f"word{index}": word for index, word in enumerate(words)},
                "names": list_names(query, words) if words else (),
                **(coordinates.vector._asdict() if coordinates else {}),
                **(get_circle_params(circle) if circle else {}),
                **filter_params,
                "user": user.pk,
            },
            # A word of one letter occurs in nearly every center.
            is_selective=circle is not None or any(len(word) > 1 for word in words),
        )
        return _search(query_of_words, filters, user)

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
    area_params = _get_area_params(area_type, area) if area else {}
    if area_params is None:
        return SearchResult()
    filter_params = filters.get_params()
    search = SearchQuery(
        QueryShape(
            limit=settings.SEARCH_MAX_RESULTS,
            area_type=area_type if area else None,
            has_city=bool(city_name),
            filters=tuple(filter_params),
        ),
        {**area_params, "city": places.fold_text(city_name), **filter_params, "user": user.pk},
        is_selective=True,
    )
    return _search(search, filters, user)


def _get_area_params(area_type: AreaType, area: str) -> dict[str, object] | None:
    """The parameters of an area; None if it is unknown."""
    match area_type:
        case AreaType.COUNTRY:
            code = places.get_country_code(area)
            return {"area": code} if code else None
        case AreaType.NEIGHBORHOOD:
            # The table is small, and SQL cannot ignore accents as our normalization does.
            rows = Neighborhood.objects.values_list("pk", "name", "original_name")
            wanted = places.fold_text(area)
            ids = [pk for pk, *names in rows if wanted in map(places.fold_text, names)]
            return {"area_ids": ids} if ids else None
        case AreaType.POSTAL_CODE:
            return {"area_codes": places.list_postal_codes(area)}
    return {"area": places.fold_text(area)}


def _search(search: SearchQuery, filters: SearchFilters, user: "User") -> SearchResult:
    result = _load_result(search, filters)
    if replica.is_configured():
        # The account may just have changed its favorites.
        ids = [center.id for center in result.centers]
        favorites = {pk for (pk,) in load_favorites(user=user.pk, centers=ids)}
        for center in result.centers:
            center.is_favorite = center.id in favorites
    return result


@compiled_query(keep_plan=True)
def load_favorites() -> RowQuerySet:
    favorites = Favorite.objects.filter(user=int_param("user"))
    return favorites.filter(center__any_of=int_list_param("centers")).values_list("center_id")


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
    if search.shape.filters or len(centers) == search.shape.limit:
        options = filter_options.collect_from_search(search, centers)
    else:
        # Neither a filter nor the limit excluded a center.
        options = filter_options.collect_from_centers(centers)
    for center in centers:
        center.meeting_rooms = filters.select_rooms(center.rooms_on_offer)
    return SearchResult(centers, options)
