"""Approval and decline of pending requests, no-shows, and automatic transitions."""

from itertools import product

import pytest
from django.db.models import Sum

from accounts.act import Act
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import approval, attendance, cancellation, charging, expiry
from reservations.models import Reservation, history
from reservations.models.status import (
    HOLDING_STATUSES,
    InvalidStatusTransition,
    Status,
)
from roombook.errors import NotFound, ReservationNotOpen, SlotUnavailable
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
    make_pending_booking,
    make_room,
    pay,
    update_promo_code,
)
from tests.gateway_faults import add_fault

pytestmark = pytest.mark.django_db


@pytest.fixture
def pending(ada):
    return make_pending_booking(ada)


def get_gateway_state():
    payment = SandboxPayment.objects.get()
    return payment.state, payment.captures


# --- Approve, decline -----------------------------------------------------------------------------


def test_approve_captures_the_payment(pending):
    reservation = approval.approve(Act(None, NOW + HOUR), pending.pk)

    assert reservation.status == Status.CONFIRMED
    assert reservation.payments.get().state == "captured"
    assert get_gateway_state() == ("captured", 1)


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


@pytest.mark.parametrize("answer", [approval.approve, approval.decline])
def test_answer_to_reservation_that_is_not_pending_is_refused(answer):
    for status in set(Status) - {Status.PENDING}:
        row = ReservationFactory(status=status)
        with pytest.raises(ReservationNotOpen, match="Only a pending request"):
            answer(Act(None, NOW), row.pk)
    with pytest.raises(NotFound):
        answer(Act(None, NOW), 999)


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


def test_no_show_is_undone_if_the_customer_came():
    for status in Status:
        row = ReservationFactory(status=status)
        if status == Status.NO_SHOW:
            assert (
                attendance.undo_no_show(Act(None, START + DAY), row.pk).status == Status.COMPLETED
            )
        else:
            with pytest.raises(ReservationNotOpen):
                attendance.undo_no_show(Act(None, START + DAY), row.pk)


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


def test_no_show_of_completed_reservation_is_accepted_others_are_refused():
    for status in Status:
        row = ReservationFactory(status=status)
        if status in {Status.CONFIRMED, Status.COMPLETED}:
            assert attendance.mark_no_show(Act(None, START + DAY), row.pk).status == Status.NO_SHOW
        else:
            with pytest.raises(ReservationNotOpen):
                attendance.mark_no_show(Act(None, START + DAY), row.pk)


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


def test_gateway_timeout_does_not_stop_other_reservations(ada):
    add_fault(operation="void", kind="timeout_before", times=1)
    first = make_pending_booking(ada)
    second = make_draft()

    assert run_close_overdue(START) == {first.pk: Status.EXPIRED, second.pk: Status.EXPIRED}
    assert first.payments.get().state == "authorized"
    charging.settle_payment(first.payments.get(), now=START)
    assert first.payments.get().state == "voided"


# --- Customers are checked in when they arrive (B18.1) --------------------------------------------


def test_check_in_is_recorded_and_undone_by_staff():
    reservation, clerk = make_booking(), AdministratorFactory()

    attendance.check_in(Act(clerk, START, is_staff=True), reservation.pk)
    attendance.check_in(Act(clerk, START + HOUR, is_staff=True), reservation.pk)

    reservation.refresh_from_db()
    assert reservation.checked_in_at == START
    assert reservation.is_checked_in
    attendance.undo_check_in(Act(clerk, START + HOUR, is_staff=True), reservation.pk)
    attendance.undo_check_in(Act(clerk, START + HOUR, is_staff=True), reservation.pk)
    reservation.refresh_from_db()
    assert reservation.checked_in_at is None
    entries = list(history.get_changes(reservation)[:2])
    changes = [entry.changes["checked_in_at"] for entry in entries]
    assert changes == [[START.isoformat(), None], [None, START.isoformat()]]
    assert {entry.actor for entry in entries} == {clerk}


@pytest.mark.parametrize(
    "status", sorted({*Status} - {Status.CONFIRMED, Status.COMPLETED}), ids=str
)
def test_check_in_of_meeting_that_is_not_booked_is_refused(status):
    reservation = ReservationFactory(status=status, start=START, end=START + HOUR)

    with pytest.raises(ReservationNotOpen):
        attendance.check_in(Act(None, START), reservation.pk)
    reservation.refresh_from_db()
    assert reservation.checked_in_at is None


def test_check_in_opens_twelve_hours_before_the_start():
    reservation = make_booking()

    with pytest.raises(ReservationNotOpen):
        attendance.check_in(Act(None, START - 13 * HOUR), reservation.pk)
    assert attendance.check_in(Act(None, START - 12 * HOUR), reservation.pk).is_checked_in


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


# --- Transitions between the statuses of reservations ---------------------------------------------


# A second copy of the whole table, from each status to the next: all others are illegal.
LEGAL = {
    "New": "Processing Confirmed Pending Cancelled Expired",
    "Processing": "New Confirmed Pending",
    "Pending": "Confirmed Declined Cancelled Expired",
    "Confirmed": "Cancelled Completed NoShow",
    "Completed": "NoShow Confirmed",
    "NoShow": "Confirmed Completed",
}
PAIRS = list(product(Status.values, Status.values))


def get_times(status):
    """The columns that the database demands of a status."""
    is_booked = status not in {Status.NEW, Status.PROCESSING}
    return {
        "booked_at": NOW if is_booked else None,
        "cancelled_at": NOW if status == Status.CANCELLED else None,
    }


@pytest.mark.django_db
def test_transition_to_follows_the_table():
    row = ReservationFactory()
    for old, new in PAIRS:
        # Set the status without transition_to.
        type(row).objects.filter(pk=row.pk).update(
            status=old, holds_slot=old in HOLDING_STATUSES, hold_until=None, **get_times(old)
        )
        row.refresh_from_db()
        if new in LEGAL.get(old, "").split():
            row.transition_to(Status(new), Act(None, NOW), **get_times(new))
            row.refresh_from_db()
            assert (row.status, row.holds_slot) == (new, new in HOLDING_STATUSES)
        else:
            with pytest.raises(
                InvalidStatusTransition, match=f"is {old} and cannot become {new}|{old}"
            ):
                row.transition_to(Status(new), Act(None, NOW))
            row.refresh_from_db()
            assert row.status == old
