"""The statements of a search. They are compiled once for each combination of conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db.models import FloatField, Q, Value

from centers.geo import UnitVector
from centers.models import Center, Favorite
from centers.querysets import CenterQuerySet, SearchCircle
from centers.records import CENTER_COLUMNS
from centers.search.filters import has_bookable_room, meets_center_filters, offers_what_is_wanted
from centers.search.words import MAX_WORDS
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
