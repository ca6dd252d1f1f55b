"""One room by its id, as every booking begins."""

from django.db.models import QuerySet

from centers.models import MeetingRoom
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.errors import NotFound


def get_room(room_id: int, *, center_id: int | None = None) -> MeetingRoom:
    """The room with its center and rate, of that center where one is told, else NotFound."""
    room = next(iter(load_room_with_center(room=room_id)), None)
    if room is None or center_id not in {None, room.center_id}:
        raise NotFound
    return room


@compiled_query(keep_plan=True)
def load_room_with_center() -> QuerySet[MeetingRoom]:
    return MeetingRoom.objects.select_related("center", "rate").filter(pk=int_param("room"))
