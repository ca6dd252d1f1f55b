"""What matches a search, as questions that are written once for searches of one kind."""

from typing import Any, NamedTuple

from django.db.models import FloatField, QuerySet, Value

from centers import geo
from centers.models import Center
from centers.querysets import CenterQuerySet, SearchCircle, offers_condition
from centers.records import CENTER_COLUMNS
from centers.search.filters import FilterParams
from roombook.db.compiled_queries import (
    compiled_query,
    float_param,
    int_param,
    text_list_param,
    text_param,
)


class QueryShape(NamedTuple):
    """What the words of a search's statements depend on; all the rest is bound to them."""

    limit: int
    words: int = 0
    has_location: bool = False
    longitude_ranges: int = 0  # of longitudes, around the circle; none without one
    filters: tuple[str, ...] = ()


VECTOR_PARAMS = geo.UnitVector(float_param("x"), float_param("y"), float_param("z"))


def get_circle_params(circle: SearchCircle) -> dict[str, float]:
    """What a circle binds."""
    bounds = {"south": circle.south, "north": circle.north, "chord": circle.squared_chord}
    for index, (west, east) in enumerate(circle.longitudes):
        bounds |= {f"west{index}": west, f"east{index}": east}
    return bounds


def filter_matching(how: QueryShape) -> CenterQuerySet:
    """Active centers that match place and words, before the filters, with or without a room."""
    found = Center.objects.active().containing_words(
        [text_param(f"word{n}") for n in range(how.words)]
    )
    if how.longitude_ranges:
        ranges = [
            (float_param(f"west{n}"), float_param(f"east{n}")) for n in range(how.longitude_ranges)
        ]
        found = found.within(
            SearchCircle(
                float_param("south"),
                float_param("north"),
                ranges,
                VECTOR_PARAMS,
                float_param("chord"),
            )
        )
    return found


def select_rows(centers: CenterQuerySet, user: Any, *more: str) -> QuerySet[Any, Any]:
    """Centers as rows: the columns that answers show, the squared chord if any, and `more`."""
    if "squared_chord" not in centers.query.annotations:
        unmeasured: Any = Value(None, output_field=FloatField())
        centers = centers.annotate(squared_chord=unmeasured)  # type: ignore[no-redef]
    return centers.for_user(user).values_list(*CENTER_COLUMNS, "squared_chord", *more)


# --- The page -------------------------------------------------------------------------------------

# None keeps its plan: one for any circle would read all rooms for the few of a small circle.


@compiled_query(keep_plan=False)
def load_page(how: QueryShape) -> QuerySet[Any, Any]:
    return select_rows(_order_all(how).meeting(FilterParams(how.filters)), int_param("user"))[
        : how.limit
    ]


@compiled_query(keep_plan=False)
def load_page_matching_names(how: QueryShape) -> QuerySet[Any, Any]:
    """Those that come first where there is no place: their city, code or name is what is asked."""
    return select_rows(
        _order_matching_names(how).meeting(FilterParams(how.filters)), int_param("user")
    )[: how.limit]


# Nearly every center offers what is wanted. To ask all that match before they are put in order
# costs several times as much as to ask the first few afterwards, and to look further if need be.


@compiled_query(keep_plan=False)
def load_nearest(how: QueryShape) -> QuerySet[Any, Any]:
    return _select_first(_order_all(how), how)


@compiled_query(keep_plan=False)
def load_first_matching_names(how: QueryShape) -> QuerySet[Any, Any]:
    return _select_first(_order_matching_names(how), how)


def get_lookahead(how: QueryShape) -> int:
    return 2 * how.limit


def _select_first(centers: CenterQuerySet, how: QueryShape) -> QuerySet[Any, Any]:
    filters = FilterParams(how.filters)
    asked = centers.meeting_center_filters(filters).annotate(is_offering=offers_condition(filters))
    return select_rows(asked, int_param("user"), "is_offering")[: get_lookahead(how)]


def _order_all(how: QueryShape) -> CenterQuerySet:
    if how.has_location:
        return filter_matching(how).by_distance(VECTOR_PARAMS)
    others = (
        filter_matching(how).not_matching_names(text_list_param("names"))
        if how.words
        else filter_matching(how)
    )
    return others.by_rank()


def _order_matching_names(how: QueryShape) -> CenterQuerySet:
    return filter_matching(how).matching_names(text_list_param("names")).by_rank_unindexed()
