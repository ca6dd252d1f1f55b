"""The one order in which rows are locked: room, reservation, promo code, allowances, payment.

The room comes first because rivals share it: whoever takes or frees a slot queues on the room's
row, so that nobody waits for a reservation while holding one that the other waits for. The
account's count of tries with a card comes after all of them.
"""

from typing import TYPE_CHECKING, Any

from centers.models import MeetingRoom
from reservations.models import Reservation
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.errors import NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User


def lock_room(room_id: int) -> MeetingRoom:
    """The room, its center and its rate; nobody else takes or frees a slot of it until commit."""
    found = room_for_update(room=room_id)
    if not found:
        raise NotFound
    return found[0]


@compiled_query(keep_plan=True)
def room_for_update() -> "QuerySet[MeetingRoom]":
    # NO KEY: a plain FOR UPDATE would also stop every insert that merely refers to the room.
    rows = MeetingRoom.objects.select_related("center", "rate").filter(pk=int_param("room"))
    return rows.select_for_update(no_key=True, of=("self",))


def lock_reservation(reservation_id: int, *, owner: "User | None" = None) -> Reservation:
    """The reservation under its room's lock, or NotFound, also where it is somebody else's."""
    while True:
        room = lock_room(_room_of(reservation_id, owner=owner))
        [reservation] = reservation_for_update(reservation=reservation_id)
        # Staff may have moved it to another room while we waited for this one.
        if reservation.room_id == room.pk:
            reservation.room = room
            return reservation


def _room_of(reservation_id: int, *, owner: "User | None" = None) -> int:
    found = room_and_customer.first(reservation=reservation_id)
    if found is None or (owner is not None and found[1] != owner.pk):
        raise NotFound
    room_id: int = found[0]
    return room_id


@compiled_query(keep_plan=True)
def room_and_customer() -> "QuerySet[Any, Any]":
    rows = Reservation.objects.filter(pk=int_param("reservation"))
    return rows.values_list("room_id", "user_id")


@compiled_query(keep_plan=True)
def reservation_for_update() -> "QuerySet[Any, Reservation]":
    rows = Reservation.objects.select_related("user", "promo_code")
    return rows.select_for_update(no_key=True, of=("self",)).filter(pk=int_param("reservation"))


def lock_for_rescheduling(reservation_id: int, room_id: int) -> tuple[Reservation, MeetingRoom]:
    """The reservation under the locks of its own room and of another, and that other one.

    Rooms are locked in the order of their ids: of two moves that cross, one waits for the other.
    """
    while True:
        old_id = _room_of(reservation_id)
        rooms = {pk: lock_room(pk) for pk in sorted({old_id, room_id})}
        [reservation] = reservation_for_update(reservation=reservation_id)
        if reservation.room_id == old_id:
            reservation.room = rooms[old_id]
            return reservation, rooms[room_id]
