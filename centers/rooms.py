"""One room by its id, as every booking begins."""

from django.db.models import QuerySet

from centers.models import MeetingRoom
from roombook.db.compiled_queries import number, prepared
from roombook.errors import NotFound


def bookable_room(room_id: int, *, center_id: int | None = None) -> MeetingRoom:
    """The room with its center and rate, of that center where one is told, else NotFound."""
    room = next(iter(room_with_center(room=room_id)), None)
    if room is None or center_id not in {None, room.center_id}:
        raise NotFound
    return room


@prepared
def room_with_center() -> QuerySet[MeetingRoom]:
    return MeetingRoom.objects.select_related("center", "rate").filter(pk=number("room"))
