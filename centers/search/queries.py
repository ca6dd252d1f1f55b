"""What matches a search, as questions that are written once for searches of one kind."""

from typing import Any, NamedTuple

from django.db.models import FloatField, QuerySet, Value

from centers import geo
from centers.models import Center
from centers.querysets import CenterQuerySet, Circle, offering
from centers.records import CENTER_COLUMNS
from centers.search.filters import FiltersToCome
from roombook.db.compiled_queries import number, real, text, texts, written_once


class How(NamedTuple):
    """What the words of a search's statements depend on; all the rest is bound to them."""

    limit: int
    words: int = 0
    has_place: bool = False
    ranges: int = 0  # of longitudes, around the circle; none without one
    filters: tuple[str, ...] = ()


VECTOR = geo.Vector(real("x"), real("y"), real("z"))


def bounds_of(circle: Circle) -> dict[str, float]:
    """What a circle binds."""
    bounds = {"south": circle.south, "north": circle.north, "chord": circle.squared_chord}
    for index, (west, east) in enumerate(circle.longitudes):
        bounds |= {f"west{index}": west, f"east{index}": east}
    return bounds


def matching(how: How) -> CenterQuerySet:
    """Active centers that match place and words, before the filters, with or without a room."""
    found = Center.objects.active().containing([text(f"word{n}") for n in range(how.words)])
    if how.ranges:
        ranges = [(real(f"west{n}"), real(f"east{n}")) for n in range(how.ranges)]
        found = found.within(Circle(real("south"), real("north"), ranges, VECTOR, real("chord")))
    return found


def rows_of(centers: CenterQuerySet, user: Any, *more: str) -> QuerySet[Any, Any]:
    """Centers as rows: the columns that answers show, the squared chord if any, and `more`."""
    if "squared_chord" not in centers.query.annotations:
        unmeasured: Any = Value(None, output_field=FloatField())
        centers = centers.annotate(squared_chord=unmeasured)  # type: ignore[no-redef]
    return centers.for_user(user).values_list(*CENTER_COLUMNS, "squared_chord", *more)


# --- The page -------------------------------------------------------------------------------------

# None keeps its plan: one for any circle would read all rooms for the few of a small circle.


@written_once
def page(how: How) -> QuerySet[Any, Any]:
    return rows_of(_ordered(how).meeting(FiltersToCome(how.filters)), number("user"))[: how.limit]


@written_once
def page_called(how: How) -> QuerySet[Any, Any]:
    """Those that come first where there is no place: their city, code or name is what is asked."""
    return rows_of(_called(how).meeting(FiltersToCome(how.filters)), number("user"))[: how.limit]


# Nearly every center offers what is wanted. To ask all that match before they are put in order
# costs several times as much as to ask the first few afterwards, and to look further if need be.


@written_once
def nearest(how: How) -> QuerySet[Any, Any]:
    return _first_few(_ordered(how), how)


@written_once
def first_called(how: How) -> QuerySet[Any, Any]:
    return _first_few(_called(how), how)


def reach(how: How) -> int:
    return 2 * how.limit


def _first_few(centers: CenterQuerySet, how: How) -> QuerySet[Any, Any]:
    filters = FiltersToCome(how.filters)
    asked = centers.marked_by(filters).annotate(is_offering=offering(filters))
    return rows_of(asked, number("user"), "is_offering")[: reach(how)]


def _ordered(how: How) -> CenterQuerySet:
    if how.has_place:
        return matching(how).by_distance(VECTOR)
    others = matching(how).not_called(texts("names")) if how.words else matching(how)
    return others.by_rank()


def _called(how: How) -> CenterQuerySet:
    return matching(how).called(texts("names")).by_rank_of_few()
