"""Approval and decline of requests, no-shows, check-ins, and what each status allows."""

from contextlib import nullcontext

import pytest
from django.db.models import Sum

from accounts.act import Act
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import (
    amendments,
    approval,
    attendance,
    cancellation,
    checkout,
    expiry,
)
from reservations.booking.amendments import ChangeRequest
from reservations.booking.drafts import extend_hold
from reservations.models import Reservation, history
from reservations.models.status import (
    Status,
)
from roombook.errors import ReservationNotOpen, SlotUnavailable
from tests.factories_centers import ClosureFactory
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
    pay,
    update_promo_code,
)
from tests.reservations.rescheduling_helpers import make_room_at_rate

pytestmark = pytest.mark.django_db


@pytest.fixture
def pending(ada):
    return make_pending_booking(ada)


def get_gateway_state():
    payment = SandboxPayment.objects.get()
    return payment.state, payment.captures


# --- Approve, decline -----------------------------------------------------------------------------


def test_decline_voids_the_payment_and_returns_benefits(ada):
    plan = AllowanceFactory(user=ada, hours=1)
    promo = PromoCodeFactory(code="TEN")
    reservation = make_draft(ada, make_room(is_live_inventory=False))
    update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    pay(reservation)

    reservation = approval.decline(Act(None, NOW + HOUR), reservation.pk)

    assert (reservation.status, reservation.holds_slot) == (Status.DECLINED, False)
    assert reservation.payments.get().state == "voided"
    assert get_gateway_state() == ("voided", 0)
    promo.refresh_from_db()
    assert (promo.uses, promo.spent) == (0, 0)
    assert plan.entries.aggregate(balance=Sum("hours")) == {"balance": 0}


def test_approve_checks_availability_again(pending):
    room = pending.room
    ClosureFactory(center=room.center, starts_at=START, ends_at=START + HOUR)

    with pytest.raises(SlotUnavailable):
        approval.approve(Act(None, NOW), pending.pk)

    pending.refresh_from_db()
    assert pending.status == Status.PENDING
    assert get_gateway_state() == ("authorized", 0)


def test_approve_free_request_needs_no_payment(ada):
    AllowanceFactory(user=ada)
    reservation = make_pending_booking(ada)
    assert reservation.status == Status.PENDING
    assert approval.approve(Act(None, NOW), reservation.pk).status == Status.CONFIRMED
    assert not reservation.payments.exists()


# --- No-show --------------------------------------------------------------------------------------


def test_no_show_is_possible_once_the_meeting_has_begun(ada):
    reservation = make_booking(ada)
    with pytest.raises(ReservationNotOpen):
        attendance.mark_no_show(Act(None, START - MINUTE), reservation.pk)
    assert attendance.mark_no_show(Act(None, START), reservation.pk).status == Status.NO_SHOW


def test_no_show_undone_before_the_end_holds_its_room_again(ada):
    reservation = make_booking(ada)
    room = reservation.room
    attendance.mark_no_show(Act(None, START + MINUTE), reservation.pk)
    # Neither the customer's own draft prevents it, nor an expired hold of another one.
    own = make_draft(ada, room, start=START + HOUR, hours=1, now=START + MINUTE)
    make_draft(room=room, start=START + 2 * HOUR, hours=1, now=START + MINUTE)

    undone = attendance.undo_no_show(Act(None, START + 30 * MINUTE), reservation.pk)

    assert (undone.status, undone.holds_slot) == (Status.CONFIRMED, True)
    assert not Reservation.objects.get(pk=own.pk).holds_slot
    with pytest.raises(SlotUnavailable):
        make_draft(room=room, start=START + HOUR, hours=1, now=START + 30 * MINUTE)
    assert run_close_overdue(START + 3 * HOUR)[reservation.pk] == Status.COMPLETED


def test_no_show_is_not_undone_before_its_end_if_the_room_was_booked(ada):
    reservation = make_booking(ada)
    attendance.mark_no_show(Act(None, START + MINUTE), reservation.pk)
    make_booking(room=reservation.room, start=START + HOUR, hours=1, now=START + MINUTE)

    with pytest.raises(SlotUnavailable, match="booked by somebody else meanwhile"):
        attendance.undo_no_show(Act(None, START + 2 * MINUTE), reservation.pk)

    assert Reservation.objects.get(pk=reservation.pk).status == Status.NO_SHOW
    undone = attendance.undo_no_show(Act(None, START + 3 * HOUR), reservation.pk)
    assert undone.status == Status.COMPLETED


# --- Automatic transitions ------------------------------------------------------------------------


def run_close_overdue(now):
    """Return the changes, and check that a second run changes nothing."""
    changed = {each.pk: each.status for each in expiry.close_overdue(now=now)}
    assert list(expiry.close_overdue(now=now)) == []
    for pk, status in changed.items():
        assert Reservation.objects.get(pk=pk).status == status
    return changed


@pytest.mark.parametrize(
    ("make", "first", "status", "at_gateway"),
    [
        (make_draft, START, Status.EXPIRED, None),
        (make_booking, START + 3 * HOUR, Status.COMPLETED, ("captured", 1)),
        (make_pending_booking, START, Status.EXPIRED, ("voided", 0)),
        # A request is answered within 72 hours.
        (
            lambda: make_pending_booking(start=START + 5 * DAY),
            *(NOW + 72 * HOUR, Status.EXPIRED, ("voided", 0)),
        ),
    ],
)
def test_reservation_is_closed_when_its_time_is_over(make, first, status, at_gateway):
    reservation = make()

    assert run_close_overdue(first - MINUTE) == {}
    assert run_close_overdue(first) == {reservation.pk: status}
    assert at_gateway is None or get_gateway_state() == at_gateway


def test_draft_that_is_cancelled_during_the_run_is_left(ada):
    make_draft()
    draft = make_draft(ada)
    run = expiry.close_overdue(now=START)
    assert next(run) != draft
    cancellation.cancel(Act(ada, START), draft.pk)
    assert [*run] == []


# --- Customers are checked in when they arrive (B18.1) --------------------------------------------


def test_check_in_is_recorded_from_twelve_hours_before_the_start_and_undone_by_staff():
    reservation, clerk = make_booking(), AdministratorFactory()
    first = START - 12 * HOUR

    with pytest.raises(ReservationNotOpen):
        attendance.check_in(Act(clerk, first - MINUTE, is_staff=True), reservation.pk)
    for now in (first, START):
        attendance.check_in(Act(clerk, now, is_staff=True), reservation.pk)

    reservation.refresh_from_db()
    assert reservation.checked_in_at == first
    assert reservation.is_checked_in
    attendance.undo_check_in(Act(clerk, START + HOUR, is_staff=True), reservation.pk)
    attendance.undo_check_in(Act(clerk, START + HOUR, is_staff=True), reservation.pk)
    reservation.refresh_from_db()
    assert reservation.checked_in_at is None
    entries = list(history.get_changes(reservation)[:2])
    changes = [entry.changes["checked_in_at"] for entry in entries]
    assert changes == [[first.isoformat(), None], [None, first.isoformat()]]
    assert {entry.actor for entry in entries} == {clerk}


def test_check_in_does_not_count_after_moving_to_another_day():
    reservation = make_booking()
    attendance.check_in(Act(None, START), reservation.pk)
    reservation.refresh_from_db()
    reservation.start, reservation.end = START + DAY, START + DAY + HOUR
    reservation.save()

    assert not reservation.is_checked_in
    again = attendance.check_in(Act(None, START + DAY), reservation.pk)
    assert again.checked_in_at == START + DAY


def test_no_show_of_checked_in_customer_is_refused_until_undone():
    reservation = make_booking()
    attendance.check_in(Act(None, START), reservation.pk)

    with pytest.raises(ReservationNotOpen, match="Undo the check-in first"):
        attendance.mark_no_show(Act(None, START + HOUR), reservation.pk)
    attendance.undo_check_in(Act(None, START + HOUR), reservation.pk)
    assert attendance.mark_no_show(Act(None, START + HOUR), reservation.pk).status == Status.NO_SHOW


# --- The statuses in which something can be done --------------------------------------------------


def move(act, row):
    request = ChangeRequest(row.room_id, START + DAY, START + DAY + 3 * HOUR)
    return amendments.amend(act, row.pk, request)


def check_out(act, row):
    return checkout.check_out(act, row.pk, payment_method=make_payment_method())


# What is done, when, and with which statuses: all others are refused.
ACTIONS = {
    "approve": (lambda act, row: approval.approve(act, row.pk), NOW, "Pending"),
    "decline": (lambda act, row: approval.decline(act, row.pk), NOW, "Pending"),
    "check in": (lambda act, row: attendance.check_in(act, row.pk), START, "Confirmed Completed"),
    "no-show": (
        *(lambda act, row: attendance.mark_no_show(act, row.pk), START + DAY),
        "Confirmed Completed",
    ),
    "undo no-show": (
        *(lambda act, row: attendance.undo_no_show(act, row.pk), START + DAY),
        "NoShow",
    ),
    "cancel": (
        *(lambda act, row: cancellation.cancel(act, row.pk), NOW),
        "New Pending Confirmed Cancelled",
    ),
    "preview cancel": (
        *(lambda act, row: cancellation.cancel.preview(act, row.pk), NOW),
        "New Pending Confirmed Cancelled",
    ),
    "extend hold": (
        lambda act, row: extend_hold(act, row.pk, until=NOW + HOUR),
        *(NOW, "New"),
    ),
    "check out": (check_out, NOW, "New Processing Pending Confirmed Completed NoShow"),
    "move": (move, NOW, "New Pending Confirmed"),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_action_is_refused_in_all_other_statuses(name):
    do, now, possible = ACTIONS[name]
    act = Act(AdministratorFactory(), now, is_staff=True)
    for status in Status:
        row = ReservationFactory(status=status, room=make_room_at_rate(make_room(), 0))
        is_possible = status in possible.split()
        with nullcontext() if is_possible else pytest.raises(ReservationNotOpen):
            do(act, row)
        row.refresh_from_db()
        assert is_possible or row.status == status, status
