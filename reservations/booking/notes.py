"""Adds and deletes notes of staff about reservations and customers (B18.2)."""

import datetime as dt

from accounts import roles
from accounts.erasure import is_erased
from accounts.models import User
from reservations.models import Note, Reservation
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest

# Authors delete their own notes for this long; later, only staff with the permission do.
AUTHOR_DELETES_WITHIN = dt.timedelta(hours=24)
# The same text again within this time is a button that was pressed twice.
DUPLICATE_WITHIN = dt.timedelta(minutes=1)


@in_transaction
def add_note(subject: Reservation | User, text: str, *, by: User, now: dt.datetime) -> Note:
    """Add a note about a reservation or a customer. The same text at once is the same note.

    Raises InvalidRequest if the customer's account has been erased.
    """
    if isinstance(subject, Reservation):
        note, customer_id = Note(reservation=subject), subject.user_id
    else:
        note, customer_id = Note(customer=subject), subject.pk
    # An erasure at the same time either deletes the note or is seen here.
    if is_erased(User.objects.lock(customer_id)):
        raise InvalidRequest({"text": "The account of this customer has been erased."})
    note.text, note.author, note.created_at = text, by, now
    same = Note.objects.filter(
        reservation=note.reservation_id,
        customer=note.customer_id,
        author=by,
        text=text,
        created_at__gt=now - DUPLICATE_WITHIN,
    ).first()
    if same is not None:
        return same
    note.save()
    return note


def can_delete(note: Note, user: User, *, now: dt.datetime) -> bool:
    """Return whether the user may delete a note.

    A note about a customer belongs to no center, so the permission is needed at all of them. The
    note's reservation is loaded with its room.
    """
    if note.author_id == user.pk and note.created_at > now - AUTHOR_DELETES_WITHIN:
        return True
    if note.reservation is None:
        return roles.has_permission_everywhere(user, roles.DELETE_NOTE)
    return roles.has_permission(user, roles.DELETE_NOTE, note.reservation.room.center_id)
