"""The statements of a search. They are compiled once for each shape of a search."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from django.db.models import Exists, FloatField, Q, Value

from centers import geo
from centers.models import Center, Favorite
from centers.querysets import CenterQuerySet, SearchCircle
from centers.records import CENTER_COLUMNS
from centers.search.filters import (
    COMPILED_PARAMS,
    FilterParams,
    has_bookable_room,
    meets_center_filters,
    offers_what_is_wanted,
)
from roombook.db.compiled_queries import (
    CompiledQueryFunction,
    Row,
    RowQuerySet,
    compiled_query,
    float_param,
    int_list_param,
    int_param,
    text_list_param,
    text_param,
)


class AreaType(StrEnum):
    """The contract's AreaTypes."""

    STATE = "State"
    COUNTRY = "Country"
    CITY = "City"
    NEIGHBORHOOD = "Neighborhood"
    POSTAL_CODE = "PostalCode"


class QueryShape(NamedTuple):
    """What the SQL of a search depends on. All other values are bound as parameters."""

    limit: int
    word_count: int = 0
    has_location: bool = False
    longitude_ranges: int = 0  # 0: the search is not limited to a circle
    area_type: AreaType | None = None
    has_city: bool = False
    filters: tuple[str, ...] = ()

    @property
    def filter_params(self) -> FilterParams:
        return {name: COMPILED_PARAMS[name] for name in self.filters}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search: the shape of its statements, and the values of their parameters."""

    shape: QueryShape
    params: dict[str, object]
    # Whether so few centers are likely to match that they are read before neighborhoods are.
    is_selective: bool

    def execute(self, query: CompiledQueryFunction[Row], **params: object) -> list[Row]:
        return query(self.shape, **self.params, **params)

    def load_first_page(self) -> list[Row]:
        """The rows of the first page, in their order."""
        if self.shape.has_location:
            return self._load_page(load_nearest, load_page)
        named = []
        if self.shape.word_count:
            named = self._load_page(load_first_matching_names, load_page_matching_names)
            if len(named) == self.shape.limit:
                return named
        return [*named, *self.execute(load_page)][: self.shape.limit]

    def _load_page(
        self, first: CompiledQueryFunction[Row], whole: CompiledQueryFunction[Row]
    ) -> list[Row]:
        """The page from the first matches, if they fill it or are all; else from the whole query.

        Nearly every center has a room that meets the filters. To check that for every match before
        sorting costs several times as much as to check the first few after sorting.
        """
        rows = self.execute(first)
        page = [row[:-1] for row in rows if row[-1]][: self.shape.limit]
        if len(page) == self.shape.limit or len(rows) < _get_lookahead(self.shape):
            return page
        return self.execute(whole)


VECTOR_PARAMS = geo.UnitVector(float_param("x"), float_param("y"), float_param("z"))


def get_circle_params(circle: SearchCircle) -> dict[str, float]:
    params = {"south": circle.south, "north": circle.north, "chord": circle.squared_chord}
    for index, (west, east) in enumerate(circle.longitudes):
        params |= {f"west{index}": west, f"east{index}": east}
    return params


def filter_matching(shape: QueryShape) -> CenterQuerySet:
    """Active centers that match location, words, area and city, whatever the filters are."""
    words = [text_param(f"word{index}") for index in range(shape.word_count)]
    centers = Center.objects.active().containing_words(words)
    if shape.longitude_ranges:
        ranges = [
            (float_param(f"west{index}"), float_param(f"east{index}"))
            for index in range(shape.longitude_ranges)
        ]
        centers = centers.within(
            SearchCircle(
                float_param("south"),
                float_param("north"),
                ranges,
                VECTOR_PARAMS,
                float_param("chord"),
            )
        )
    if shape.area_type:
        centers = centers.filter(_is_in_area(shape.area_type))
    if shape.has_city:
        centers = centers.filter(city_folded=text_param("city"))
    return centers


def _is_in_area(area_type: AreaType) -> Q:
    area = text_param("area")
    match area_type:
        case AreaType.STATE:
            return Q(state_folded=area) | Q(state_name_folded=area)
        case AreaType.COUNTRY:
            return Q(country=area)
        case AreaType.CITY:
            return Q(city_folded=area)
        case AreaType.NEIGHBORHOOD:
            return Q(neighborhood__any_of=int_list_param("area_ids"))
        case AreaType.POSTAL_CODE:
            return Q(postal_code_folded__any_of=text_list_param("area_codes"))


def filter_listed(shape: QueryShape) -> CenterQuerySet:
    """The matching centers that customers find without filters: those with a bookable room."""
    return filter_matching(shape).filter(has_bookable_room({})).order_by()


# --- The first page ------------------------------------------------------------------------------

# The plan depends on the values: a plan kept for any circle would read all rooms, however small the
# circle. So these statements are compiled once, but planned each time.


@compiled_query(keep_plan=False)
def load_page(shape: QueryShape) -> RowQuerySet:
    return _select_page(_sort_matching(shape), shape)


@compiled_query(keep_plan=False)
def load_page_matching_names(shape: QueryShape) -> RowQuerySet:
    """Without a location, centers whose city, postal code or name is in the search come first."""
    return _select_page(_sort_matching_names(shape), shape)


@compiled_query(keep_plan=False)
def load_nearest(shape: QueryShape) -> RowQuerySet:
    return _select_first(_sort_matching(shape), shape)


@compiled_query(keep_plan=False)
def load_first_matching_names(shape: QueryShape) -> RowQuerySet:
    return _select_first(_sort_matching_names(shape), shape)


def _select_page(centers: CenterQuerySet, shape: QueryShape) -> RowQuerySet:
    params = shape.filter_params
    centers = centers.filter(meets_center_filters(params)).filter(offers_what_is_wanted(params))
    return _select_columns(centers)[: shape.limit]


def _select_first(centers: CenterQuerySet, shape: QueryShape) -> RowQuerySet:
    params = shape.filter_params
    centers = centers.filter(meets_center_filters(params))
    centers = centers.annotate(is_offering=offers_what_is_wanted(params))
    return _select_columns(centers, "is_offering")[: _get_lookahead(shape)]


def _get_lookahead(shape: QueryShape) -> int:
    return 2 * shape.limit


def _sort_matching(shape: QueryShape) -> CenterQuerySet:
    centers = filter_matching(shape)
    if shape.has_location:
        return centers.by_distance(VECTOR_PARAMS)
    if shape.word_count:
        centers = centers.not_matching_names(text_list_param("names"))
    return centers.by_rank()


def _sort_matching_names(shape: QueryShape) -> CenterQuerySet:
    return filter_matching(shape).matching_names(text_list_param("names")).by_rank_unindexed()


def _select_columns(centers: CenterQuerySet, *more: str) -> RowQuerySet:
    """Rows of CENTER_COLUMNS, the squared chord to the location (if any), and `more`."""
    is_favorite = Favorite.objects.exists_for(int_param("user"))
    annotations: dict[str, Exists | Value] = {"is_favorite": is_favorite}
    if "squared_chord" not in centers.query.annotations:
        annotations["squared_chord"] = Value(None, output_field=FloatField())
    return centers.annotate(**annotations).values_list(*CENTER_COLUMNS, "squared_chord", *more)
