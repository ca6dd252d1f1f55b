"""What answers tell of a center by its parts, whether it is a model's instance or a row."""

from collections.abc import Iterable, Sequence
from datetime import time
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from centers import hours, rates
from roombook import places


class CenterFacts:
    """What follows from its rooms on offer, its week, its pictures, and whose favorite it is."""

    __slots__ = ()

    if TYPE_CHECKING:
        time_zone_id: Any
        rooms_on_offer: Any
        is_favorite: Any

    def stretches(self) -> Iterable[tuple[int, time, time]]:
        """Weekday, opening and closing."""
        raise NotImplementedError

    def pictures(self) -> Iterable[Any]:
        raise NotImplementedError

    @property
    def zone(self) -> ZoneInfo:
        return places.get_time_zone(self.time_zone_id)

    @property
    def image(self) -> Any:
        """The picture that stands for it."""
        return next(iter(self.pictures()), None)

    @property
    def hours(self) -> Sequence[tuple[str, str]]:
        """The week in few words: (value, display value) a run of equal days."""
        return hours.summarize_intervals(self.stretches())

    @property
    def center_hours(self) -> list[dict[str, str]]:
        return [{"value": value, "display_value": display} for value, display in self.hours]

    @property
    def center_hours_concatenated(self) -> str:
        return "; ".join(display for _, display in self.hours)

    @property
    def lowest_rate(self) -> str:
        """The lowest of the rooms' entry prices, compared within the best kind that any room has.

        A center with one room by the hour and one by the day shows the price of the hour.
        """
        price = rates.get_lowest_entry_price(room.rate for room in self.rooms_on_offer)
        return "" if price is None else str(price)

    @property
    def is_live_inventory(self) -> bool:
        return any(room.is_live_inventory for room in self.rooms_on_offer)

    @property
    def is_not_favorite(self) -> bool | None:
        return None if self.is_favorite is None else not self.is_favorite
