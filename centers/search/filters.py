"""The filters of a search (B9.4). Room filters are declared once, for SQL and for memory."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

from django.db.models import Count, Exists, OuterRef, Q

from centers.models import MeetingRoom, Service
from centers.records import RoomRecord
from roombook.errors import InvalidRequest

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
