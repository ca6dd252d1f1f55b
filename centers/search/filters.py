"""What a customer wants of a center and of its room, and what it is where a search is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from centers.records import RoomRecord
from roombook.db.compiled_queries import int_list_param, int_param
from roombook.errors import InvalidRequest

NO_IDS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """What a customer wants of a center and its room; the default wants nothing."""

    capacity_low: int | None = None
    capacity_high: int | None = None
    resource_type_ids: frozenset[int] = NO_IDS
    service_ids: frozenset[int] = NO_IDS
    neighborhood_ids: frozenset[int] = NO_IDS
    only_after_hours: bool = False
    only_realtime: bool = False

    def __post_init__(self) -> None:
        low, high = self.capacity_low, self.capacity_high
        if low is not None and high is not None and low > high:
            raise InvalidRequest({"filters.capacity_low": "This is above CapacityHigh."})

    @property
    def active_names(self) -> tuple[str, ...]:
        """Which filters there are; a capacity of 0 is one, an empty list or false is none."""
        wishes = ((name, getattr(self, name)) for name in FILTER_PARAMS)
        return tuple(
            name for name, wish in wishes if not (wish is None or wish is False or wish == NO_IDS)
        )

    @property
    def service_count(self) -> int:
        return len(self.service_ids)

    @property
    def params(self) -> dict[str, Any]:
        """What takes the places that FiltersToCome leaves."""
        wishes = {name: getattr(self, name) for name in FILTER_PARAMS}
        return {**wishes, "service_count": self.service_count}

    def matches_room(self, room: RoomRecord) -> bool:
        """Whether one room meets all the room filters (MeetingRoom.objects.wanted, in memory)."""
        low, high = self.capacity_low, self.capacity_high
        return (
            (low is None or room.capacity >= low)
            and (high is None or room.capacity <= high)
            and (not self.resource_type_ids or room.resource_type_id in self.resource_type_ids)
            and (not self.only_realtime or room.is_live_inventory)
        )


NO_FILTERS = SearchFilters()
FILTER_PARAMS: dict[str, Any] = {
    "capacity_low": int_param("capacity_low"),
    "capacity_high": int_param("capacity_high"),
    "resource_type_ids": int_list_param("resource_type_ids"),
    "service_ids": int_list_param("service_ids"),
    "neighborhood_ids": int_list_param("neighborhood_ids"),
    "only_after_hours": True,
    "only_realtime": True,
}


class FilterParams:
    """Filters of which it is known which there are, but not yet their values."""

    capacity_low = capacity_high = None
    resource_type_ids = service_ids = neighborhood_ids = ()
    only_after_hours = only_realtime = False
    service_count = int_param("service_count")

    def __init__(self, names: Sequence[str]) -> None:
        vars(self).update({name: FILTER_PARAMS[name] for name in names})
