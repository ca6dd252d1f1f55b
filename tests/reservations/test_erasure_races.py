"""An account is erased while staff change one of its bookings (B22.9).

The change stands still just before it is recorded, until the erasure has ended or waits for it.
"""

import threading
from contextlib import suppress
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import QuerySet

from accounts.act import Act
from accounts.erasure import is_erased
from accounts.models import OutboxMessage, User
from reservations.booking import account_erasure, attendance
from reservations.booking.amendments import TakenPayment
from reservations.models import Attendee, ChangeState, Reservation, history
from reservations.models.status import HOLDING_STATUSES, Status
from roombook.errors import AccountInUse, ReservationNotOpen
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.factories_reservations import HOUR, MINUTE, START, make_booking, make_room
from tests.reservations.rescheduling_helpers import charge, make_room_at_rate, reschedule
from tests.reservations.test_change_links import send

LATE = START + 3 * HOUR + 20 * MINUTE
GUESTS = [{"name": "Grace", "email_address": "g@example.com", "company_name": "Navy"}]
COFFEE = {"text": "Coffee for ten", "amount": Decimal(30)}


def take_cash(booking, clerk):
    reschedule(
        booking,
        clerk,
        values={"extras": [COFFEE]},
        now=LATE,
        taken=TakenPayment("cash"),
    )


def charge_card(booking, clerk):
    charge(booking, clerk, extras=[COFFEE], attendees=GUESTS, total=105, now=LATE)


def send_link(booking, clerk):
    send(booking, clerk, extras=[COFFEE], attendees=GUESTS, hours=3, total=105, now=LATE)


def undo_no_show(booking, clerk):
    Reservation.objects.filter(pk=booking.pk).update(status=Status.NO_SHOW, holds_slot=False)
    attendance.undo_no_show(Act(clerk, LATE - HOUR, is_staff=True), booking.pk)


CHANGES = [take_cash, charge_card, send_link, undo_no_show]
select_for_update = QuerySet.select_for_update


def leave_accounts_unlocked(rows, **options):
    is_of_change = rows.model is User and "room" in rows.query.annotations
    return rows if is_of_change else select_for_update(rows, **options)


def erase(user, clerk):
    with suppress(AccountInUse):
        account_erasure.erase_account(user.pk, by=clerk, now=LATE)
    if threading.current_thread() is not threading.main_thread():
        connection.close()


def is_at_rest(user):
    """Whether nothing of an account is held, under way, or names somebody."""
    rows = Reservation.objects.filter(user=user)
    return not (
        rows.filter(status__in=HOLDING_STATUSES).exists()
        or rows.filter(changes__state=ChangeState.STARTED).exists()
        or rows.filter(payments__state__in=["started", "authorized"]).exists()
        or Attendee.objects.filter(reservation__user=user).exclude(name="").exists()
        or OutboxMessage.objects.filter(user=user).exists()
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("change", "is_guarded"),
    [
        *((each, True) for each in CHANGES),
        # The gateway refuses the card of an erased account in any case, and what staff do in one
        # transaction waits for the counter of drafts too.
        (send_link, False),
        (undo_no_show, False),
    ],
)
def test_change_at_the_same_time_leaves_nothing_of_an_erased_account(
    change, is_guarded, monkeypatch
):
    if not is_guarded:
        if connection.vendor == "sqlite":
            pytest.skip("SQLite has one writer at a time, with or without the lock.")
        # The negative control: the account is read, and not locked.
        monkeypatch.setattr(QuerySet, "select_for_update", leave_accounts_unlocked)
    clerk, user = AdministratorFactory(), UserFactory()
    SavedCardFactory(user=user)
    booking = make_booking(user, make_room_at_rate(make_room(), 25))
    Reservation.objects.filter(pk=booking.pk).update(status=Status.COMPLETED, holds_slot=False)
    erasing = threading.Thread(target=erase, args=[user, clerk])
    record_changes = history.record_changes

    def erase_meanwhile(*args, **kwargs):
        if not erasing.ident:
            erasing.start()
            erasing.join(timeout=1)
        return record_changes(*args, **kwargs)

    monkeypatch.setattr(history, "record_changes", erase_meanwhile)
    change(booking, clerk)
    erasing.join()

    assert (not is_erased(User.objects.get(pk=user.pk)) or is_at_rest(user)) is is_guarded


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
def test_booking_of_an_erased_account_is_not_changed(change):
    clerk, user = AdministratorFactory(), UserFactory()
    SavedCardFactory(user=user)
    booking = make_booking(user, make_room_at_rate(make_room(), 25))
    Reservation.objects.filter(pk=booking.pk).update(status=Status.COMPLETED, holds_slot=False)
    erase(user, clerk)

    with pytest.raises(ReservationNotOpen, match="has been erased"):
        change(booking, clerk)

    assert is_at_rest(user)
