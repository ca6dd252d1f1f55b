"""Locks rows, always in this order: account, room, reservation, promo code, allowances, payment.

The room comes first because competing requests share it. Every request that takes or releases a
slot waits for the room's row, so none waits for a reservation while it holds a lock that another
request waits for. The account's counter of card attempts is locked after all of them, and its
counter of drafts before all of them: only what adds a hold to its drafts locks that.
"""

import datetime as dt

from django.conf import settings
from django.db.models import F, QuerySet

from accounts.erasure import is_erased
from accounts.limits import RateLimit
from accounts.models import User
from centers.models import MeetingRoom
from reservations.models import Reservation
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.errors import NotFound, ReservationNotOpen


def lock_drafts(user_id: int, *, is_creating: bool = False, now: dt.datetime) -> None:
    """Let requests that add a hold to the customer's drafts take turns, and count a new draft.

    So they never hold more than HELD_DRAFTS_MAX rooms (B15.2), and only drafts that are created
    count: the lock, and the count, last until the transaction ends. Raises TooManyRequests.
    """
    if not settings.CREATES_PER_HOUR:
        User.objects.lock(user_id)
        return
    limit = RateLimit("create", settings.CREATES_PER_HOUR, dt.timedelta(hours=1))
    if is_creating:
        limit.attempt(user_id, now=now)
    else:
        limit.lock(user_id, now=now)


def lock_drafts_of_customer(reservation_id: int, *, now: dt.datetime) -> None:
    """Do what `lock_drafts` does, before a draft of this customer holds its room again."""
    _, user_id = _get_room_and_customer(reservation_id)
    lock_drafts(user_id, now=now)


def require_account(reservation: Reservation) -> None:
    """Raise ReservationNotOpen if the account of the customer has been erased (B22.9).

    A booking that holds its room keeps its account from being erased. So only what amends a booking
    that has ended calls this, or makes it hold its room again. The caller holds the account's lock.
    """
    if is_erased(reservation.user):
        raise ReservationNotOpen("The account of this customer has been erased.")


def lock_room(room_id: int) -> MeetingRoom:
    """Lock a room and return it with its center and rate, or raise NotFound.

    Until the transaction ends, no other request takes or releases a slot of the room.
    """
    room = room_for_update.first(room=room_id)
    if room is None:
        raise NotFound
    return room


@compiled_query(keep_plan=True)
def room_for_update() -> QuerySet[MeetingRoom]:
    # NO KEY: a plain FOR UPDATE would also block every INSERT that refers to the room.
    rows = MeetingRoom.objects.select_related("center", "rate").filter(pk=int_param("room"))
    return rows.select_for_update(no_key=True, of=("self",))


def lock_reservation(
    reservation_id: int, *, owner: User | None = None, room_id: int | None = None
) -> Reservation:
    """Lock a reservation and its room, or raise NotFound, also if `owner` is not its customer.

    A caller that has already read the reservation and checked its owner can pass its `room_id`,
    which saves a query.
    """
    while True:
        if room_id is None:
            room_id, user_id = _get_room_and_customer(reservation_id)
            if owner is not None and user_id != owner.pk:
                raise NotFound
        room = lock_room(room_id)
        [reservation] = reservation_for_update(reservation=reservation_id)
        if reservation.room_id == room.pk:
            reservation.room = room
            return reservation
        # Staff moved it to another room while this request waited for the lock.
        room_id = None


def lock_draft(reservation_id: int, *, user: User | None = None) -> Reservation:
    """Lock a reservation that is still a draft, or raise ReservationNotOpen."""
    reservation = lock_reservation(reservation_id, owner=user)
    if not reservation.is_new:
        raise ReservationNotOpen
    return reservation


def _get_room_and_customer(reservation_id: int) -> tuple[int, int]:
    row = Reservation.objects.filter(pk=reservation_id).values_list("room_id", "user_id").first()
    if row is None:
        raise NotFound
    return row


@compiled_query(keep_plan=True)
def reservation_for_update() -> QuerySet[Reservation]:
    rows = Reservation.objects.select_related("user", "promo_code")
    return rows.select_for_update(no_key=True, of=("self",)).filter(pk=int_param("reservation"))


def lock_with_account(
    reservation_id: int, room_id: int | None = None, *, owner: User | None = None
) -> tuple[Reservation, MeetingRoom]:
    """Lock a reservation, its customer's account, its own room and another one, by default none.

    Returns the reservation and the other room. The account is locked so that it is not erased
    meanwhile; the rooms in the order of their ids, so that two requests that exchange rooms do not
    deadlock. Raises NotFound as `lock_reservation` does.
    """
    while True:
        rows = User.objects.filter(reservations=reservation_id, reservations__holds_for=None)
        rows = rows.annotate(room=F("reservations__room")).only("pk")
        customer = rows.select_for_update(no_key=True, of=("self",)).first()
        if customer is None or owner not in {None, customer}:
            raise NotFound
        other_id = room_id or customer.room
        rooms = {pk: lock_room(pk) for pk in sorted({customer.room, other_id})}
        [reservation] = reservation_for_update(reservation=reservation_id)
        if reservation.room_id == customer.room:
            reservation.room = rooms[customer.room]
            return reservation, rooms[other_id]
