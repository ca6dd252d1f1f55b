"""Rooms as a table."""

from typing import ClassVar

from centers.models import MeetingRoom
from centers.resources.common import PricedResource


class RoomResource(PricedResource):
    """Rooms."""

    name: ClassVar = "rooms"
    one: ClassVar = "room"
    is_service: ClassVar = False

    class Meta:
        model = MeetingRoom
        fields = (
            *("id", "center_id", "center", "name", "type", "capacity", "rate", "is_active"),
            *("is_blocked", "is_live_inventory", "provider", "turnaround_minutes"),
            *("grid_minutes", "minimum_minutes", "maximum_minutes", "booking_window_days"),
        )
