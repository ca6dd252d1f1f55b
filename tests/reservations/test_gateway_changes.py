"""Payments that changed at the gateway or the bank, without a request of the application."""

from decimal import Decimal
from io import StringIO
from unittest.mock import Mock
from uuid import uuid4

import pytest
import time_machine
from django.core.management import call_command

from accounts.act import Act
from accounts.models import OutboxMessage
from payments import gateway_events, lifecycle, refunds
from payments.gateways.base import GatewayRefund, GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import alerts, approval, cancellation, charging, integrity
from reservations.booking.cancellation import cancel
from reservations.models import Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from roombook.errors import InvalidRequest, ReservationNotOpen
from tests.factories_people import StaffFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    PaymentFactory,
    make_booking,
    make_pending_booking,
)
from tests.gateway_faults import FaultKind, add_fault
from tests.reservations.rescheduling_helpers import (
    adjust,
    get_stored_values,
    make_room_at_rate,
    reschedule,
)

pytestmark = pytest.mark.django_db


def get_states():
    """Return the states of the reservation, the payment and the payment at the gateway."""
    gateway_payment = SandboxPayment.objects.get()
    return Reservation.objects.get().status, Payment.objects.get().state, gateway_payment.state


def capture_at_gateway():
    SandboxGateway().capture(Payment.objects.get().key)


@pytest.mark.parametrize("is_known", [True, False])
def test_approve_request_with_voided_payment_is_refused(is_known):
    reservation = make_pending_booking()
    if is_known:
        lifecycle.void_payment(Payment.objects.get(), now=NOW)
    else:
        SandboxGateway().void(Payment.objects.get().key)

    with pytest.raises(ReservationNotOpen, match="no longer reserved"):
        approval.approve(Act(None, NOW), reservation.pk)

    assert get_states() == (Status.EXPIRED, PaymentState.VOIDED, "voided")
    assert OutboxMessage.objects.last().subject.startswith("Ended")


@pytest.mark.parametrize("end", [cancel, approval.decline])
def test_closed_request_with_unknown_capture_is_refunded(end):
    reservation = make_pending_booking()
    capture_at_gateway()

    end(Act(None, NOW), reservation.pk)

    assert get_states()[1:] == (PaymentState.REFUNDED, "refunded")


def refuse_to(monkeypatch, *operations):
    """Let the gateway refuse these operations."""

    def refuse(self, key):
        raise GatewayRefused("no")

    for operation in operations:
        monkeypatch.setattr(SandboxGateway, operation, refuse)


@pytest.fixture
def uncaptured():
    """A booking whose payment is authorized and not captured."""
    add_fault(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = make_booking()
    assert get_states()[:2] == (Status.CONFIRMED, PaymentState.AUTHORIZED)
    return reservation


@pytest.mark.parametrize(
    ("refused", "expected", "states"),
    [
        (["capture"], Decimal(75), (PaymentState.VOIDED, "voided")),
        (["capture", "void"], None, (PaymentState.AUTHORIZED, "authorized")),
    ],
)
def test_booking_with_refused_capture_can_be_cancelled(
    uncaptured, monkeypatch, refused, expected, states
):
    refuse_to(monkeypatch, *refused)

    assert cancel(Act(None, NOW), uncaptured.pk, expected_refund=expected).refund == 0
    assert get_states() == (Status.CANCELLED, *states)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda row: cancel(Act(None, START), row.pk), ReservationNotOpen, "has begun"),
        (
            lambda row: adjust(row, StaffFactory(), Decimal("0.01")),
            *(ReservationNotOpen, "only be lowered"),
        ),
        (
            lambda row: adjust(row, StaffFactory(), -5, expected_total=Decimal(60)),
            *(ReservationNotOpen, "price has changed"),
        ),
        (lambda row: reschedule(row, StaffFactory()), InvalidRequest, None),
    ],
)
def test_refused_change_leaves_the_payment_unchanged(
    uncaptured, monkeypatch, change, error, message
):
    refuse_to(monkeypatch, "capture")

    with pytest.raises(error, match=message):
        change(uncaptured)
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def test_price_reduction_captures_an_authorized_payment_first(uncaptured):
    assert adjust(uncaptured, StaffFactory(), -5).refund == 5
    assert get_states()[1] == PaymentState.CAPTURED


@pytest.mark.parametrize("operations", [["capture"], ["capture", "void"]])
def test_price_reduction_with_refused_capture_changes_nothing(uncaptured, monkeypatch, operations):
    refuse_to(monkeypatch, *operations)
    before = get_stored_values(uncaptured)
    cheap = make_room_at_rate(uncaptured.room, 15)

    for attempt in (
        lambda: adjust(uncaptured, StaffFactory(), -5),
        lambda: reschedule(uncaptured, StaffFactory(), room=cheap),
    ):
        with pytest.raises(ReservationNotOpen, match="Nothing was changed"):
            attempt()

    assert get_stored_values(uncaptured) == before
    assert get_states() == (Status.CONFIRMED, PaymentState.AUTHORIZED, "authorized")


def test_cancellation_after_full_refund_says_already_refunded():
    reservation = make_booking()
    payment = Payment.objects.get()
    refund = refunds.create_refund(payment, amount=payment.amount, reason="Goodwill", now=NOW)
    refunds.execute_refund(refund, now=NOW)

    for _ in range(2):
        outcome = cancel(Act(None, NOW + MINUTE), reservation.pk)
        assert (outcome.refund, outcome.message) == (
            0,
            f"The reservation is cancelled: {cancellation.ALREADY_REFUNDED}",
        )


# --- Payments that are captured while, or after, their reservation is cancelled (B15.4) -----------


def fail_once(operation):
    """Let the gateway not answer the next call of the operation."""
    add_fault(operation=operation, kind=FaultKind.TIMEOUT_BEFORE, times=1)


def reconcile(*, at):
    with time_machine.travel(at, tick=False):
        call_command("reconcile_payments", stdout=StringIO())


@pytest.fixture
def captured_meanwhile(monkeypatch):
    """A booking. The first cancellation is refused the capture, and another run captures then."""
    fail_once("capture")
    booking = make_booking()

    def refuse(self, key):
        monkeypatch.undo()
        charging.settle_payment(Payment.objects.get(), now=NOW)
        raise GatewayRefused("This payment has a capture in progress.")

    assert Payment.objects.get().state == PaymentState.AUTHORIZED
    monkeypatch.setattr(SandboxGateway, "capture", refuse)
    return booking


@pytest.mark.parametrize(("now", "refund"), [(NOW, 75), (START - HOUR, 0)])
def test_payment_captured_while_it_is_cancelled_is_refunded_or_the_fee(
    captured_meanwhile, now, refund
):
    cancelled = cancel(Act(None, now), captured_meanwhile.pk, expected_refund=Decimal(refund))

    assert cancelled.refund == SandboxPayment.objects.get().refunded == refund
    state = PaymentState.REFUNDED if refund else PaymentState.CAPTURED
    assert Payment.objects.get().state == state
    assert not list(integrity.find_problems(now=START))


@pytest.mark.parametrize("known_after", [MINUTE, -MINUTE / 12], ids=["later", "clock is behind"])
def test_payment_captured_after_its_request_was_cancelled_is_refunded(known_after):
    """It is captured at the gateway before it is voided."""
    request = make_pending_booking()
    fail_once("void")
    cancel(Act(None, NOW), request.pk)
    capture_at_gateway()
    gateway_events.refresh(Payment.objects.get(), now=NOW + known_after)
    assert Payment.objects.get().state == PaymentState.CAPTURED

    reconcile(at=NOW + 2 * MINUTE)

    assert Payment.objects.get().state == PaymentState.REFUNDED


def test_capture_found_by_the_void_is_refunded_if_the_worker_dies_before(monkeypatch):
    reservation = make_pending_booking()
    capture_at_gateway()
    with monkeypatch.context() as patched:
        patched.setattr(charging, "_create_full_refund", Mock(side_effect=RuntimeError))
        cancel(Act(None, NOW), reservation.pk)
    assert Payment.objects.get().state == PaymentState.CAPTURED

    reconcile(at=NOW + 2 * MINUTE)

    assert Payment.objects.get().state == PaymentState.REFUNDED


def test_fee_that_another_process_captured_during_the_cancellation_is_kept():
    """The request to cancel began before the capture, and waited for a lock."""
    fail_once("capture")
    reservation = make_booking()
    late = START - HOUR
    charging.settle_payment(Payment.objects.get(), now=late + MINUTE)

    cancel(Act(None, late), reservation.pk)
    reconcile(at=START)

    assert Payment.objects.get().state == PaymentState.CAPTURED
    assert not list(integrity.find_problems(now=START))


def test_payment_captured_after_a_late_cancellation_is_refunded(monkeypatch):
    """The gateway refused to capture the fee, so the reservation was cancelled without one."""
    fail_once("capture")
    booking = make_booking()
    late = START - HOUR
    with monkeypatch.context() as patched:
        refuse_to(patched, "capture", "void")
        cancel(Act(None, late), booking.pk)
    capture_at_gateway()
    gateway_events.refresh(Payment.objects.get(), now=late + MINUTE)
    assert Payment.objects.get().state == PaymentState.CAPTURED

    reconcile(at=START + HOUR)

    assert Payment.objects.get().state == PaymentState.REFUNDED


# --- Refunds that staff make in the gateway's dashboard, and refunds that the bank returns --------


def refund_in_dashboard(amount):
    """Refund at the gateway, without us, and receive the event about it."""
    payment = Payment.objects.last()
    SandboxGateway().refund(key=payment.key, refund_key=uuid4(), amount=Decimal(amount))
    return gateway_events.refresh_with_refunds(payment, now=NOW + MINUTE)


def get_amounts():
    return list(Refund.objects.order_by("pk").values_list("amount", "state"))


def find_refused_refunds():
    return [text for _, text in alerts.find_refused_refunds(Payment.objects.all())]


@pytest.fixture
def refused(monkeypatch):
    """A booking of 75 whose price is reduced by 20. The gateway refuses to refund that."""
    booking = make_booking()
    # The bank has returned an earlier refund: the gateway has no more than 10 to refund.
    SandboxPayment.objects.update(refunded=65)
    adjust(booking, StaffFactory(), -20)
    SandboxPayment.objects.update(refunded=0)
    assert get_amounts() == [(20, RefundState.REFUSED)]
    return booking


def test_booking_with_more_refunds_due_than_paid_can_be_cancelled():
    """A refund of 40 is due. Meanwhile, 60 of 75 are refunded in the dashboard."""
    booking = make_booking()
    add_fault(operation="refund", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    adjust(booking, StaffFactory(), -40)
    refund_in_dashboard(60)

    cancelled = cancel(Act(None, NOW + MINUTE), booking.pk)

    assert (cancelled.refund, Reservation.objects.get().status) == (0, Status.CANCELLED)


def test_refund_in_dashboard_of_the_amount_of_a_refused_one_is_its_retry(refused):
    refund_in_dashboard(5)
    assert find_refused_refunds()

    refund_in_dashboard(20)

    assert not find_refused_refunds()
    assert Refund.objects.get(amount=20, state=RefundState.DONE).again.amount == 20
    # The customer gets the rest, and no less.
    assert cancel(Act(None, NOW + MINUTE), refused.pk).refund == 50


def test_refund_in_dashboard_is_the_retry_of_one_that_is_reported_as_failed_with_it(due):
    reports = [GatewayRefund("re_2", due.amount), GatewayRefund("re_1", due.amount, due.key, True)]
    refunds.record_refunds(due.payment, reports, now=NOW)
    assert Refund.objects.latest("pk").again == due


def test_returned_refund_of_an_earlier_payment_does_not_open_it_beside_another_one():
    first = PaymentFactory(reservation=make_booking(), state="refunded", counts=False)
    for failed in (False, True):
        reports = [GatewayRefund("re_1", first.amount, failed=failed)]
        refunds.record_refunds(first, reports, now=NOW)

    first.refresh_from_db()
    assert (first.state, first.refunds.get().state) == (PaymentState.REFUNDED, RefundState.REFUSED)
    assert refunds.create_retry_refund(first.refunds.get(), now=NOW).amount == 75


def test_full_refund_in_dashboard_after_a_manual_refund_is_a_full_refund(refused):
    refunds.mark_refunded_manually(Refund.objects.get(), reason="In cash", now=NOW)

    payment = refund_in_dashboard(75)

    assert payment.state == PaymentState.REFUNDED
    [problem] = integrity.find_problems(now=NOW)
    assert "refunds off their payment" in str(problem)


@pytest.fixture
def due():
    """A refund of 20 that is due: the gateway did not answer."""
    booking = make_booking()
    add_fault(operation="refund", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    adjust(booking, StaffFactory(), -20)
    return Refund.objects.get(state=RefundState.STARTED)


def test_refund_that_succeeds_after_a_parallel_call_was_refused_is_done(due, monkeypatch):
    """Otherwise staff would refund it a second time."""
    refund = SandboxGateway.refund

    def refuse(*args, **kwargs):
        raise GatewayRefused("There is a parallel call.")

    def refund_and_refuse_another(self, **kwargs):
        refund(self, **kwargs)
        monkeypatch.setattr(SandboxGateway, "refund", refuse)
        with pytest.raises(GatewayRefused):
            refunds.execute_refund(due, now=NOW)

    monkeypatch.setattr(SandboxGateway, "refund", refund_and_refuse_another)
    refunds.execute_refund(due, now=NOW)

    assert get_amounts() == [(20, RefundState.DONE)]
    assert not find_refused_refunds()


# --- Captures that are still due long after the booking -------------------------------------------


@pytest.mark.parametrize("status", [Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW])
def test_reconcile_captures_an_authorization_after_the_meeting(status):
    reservation = make_pending_booking()
    Reservation.objects.filter(pk=reservation.pk).update(
        status=status, holds_slot=status in HOLDING_STATUSES
    )

    payment = charging.settle_payment(Payment.objects.get(), now=NOW)

    assert payment.state == "captured"
    assert SandboxPayment.objects.get().captures == 1
