"""Payments that are captured while, or after, their reservation is cancelled (B15.4)."""

import re
from decimal import Decimal
from io import StringIO
from unittest.mock import Mock

import pytest
import time_machine
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from payments import gateway_events
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import Payment, PaymentState
from reservations.booking import cancellation, integrity, payment_recovery
from reservations.models import Reservation
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_pending_booking,
)

pytestmark = pytest.mark.django_db

SECOND = MINUTE / 60
UPGRADE_PAGE = settings.BASE_DIR / "docs/upgrade.md"


def fail_once(operation):
    """Let the gateway not answer the next call of the operation."""
    SandboxFault.objects.create(operation=operation, kind=FaultKind.TIMEOUT_BEFORE, times=1)


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
        payment_recovery.fulfil_obligations(Payment.objects.get(), now=NOW)
        raise GatewayRefused("This payment has a capture in progress.")

    assert Payment.objects.get().state == PaymentState.AUTHORIZED
    monkeypatch.setattr(SandboxGateway, "capture", refuse)
    return booking


def test_payment_captured_while_it_is_cancelled_is_refunded(captured_meanwhile):
    cancelled = cancellation.cancel(captured_meanwhile.pk, expected_refund=Decimal(75), now=NOW)

    assert cancelled.refund == 75
    assert Payment.objects.get().state == PaymentState.REFUNDED
    assert SandboxPayment.objects.get().refunded == 75


def test_payment_captured_while_it_is_cancelled_is_the_fee_if_it_is_too_late(captured_meanwhile):
    cancelled = cancellation.cancel(captured_meanwhile.pk, now=START - HOUR)

    assert "nothing is refunded" in cancelled.message
    assert Payment.objects.get().state == PaymentState.CAPTURED
    assert not list(integrity.find_problems(now=START))


def cancel_while_void_fails(reservation, now=NOW, known_after=MINUTE):
    """Cancel a reservation. Its payment is captured at the gateway before it is voided."""
    fail_once("void")
    cancellation.cancel(reservation.pk, now=now)
    SandboxGateway().capture(Payment.objects.get().key)
    gateway_events.refresh(Payment.objects.get(), now=now + known_after)
    assert Payment.objects.get().state == PaymentState.CAPTURED


def test_payment_captured_after_its_request_was_cancelled_is_refunded():
    reservation = make_pending_booking()

    cancel_while_void_fails(reservation)
    reconcile(at=NOW + 2 * MINUTE)

    assert Payment.objects.get().state == PaymentState.REFUNDED


def test_capture_stored_after_the_cancellation_is_refunded_if_the_clock_is_behind():
    cancel_while_void_fails(make_pending_booking(), known_after=-5 * SECOND)
    reconcile(at=NOW + 2 * MINUTE)

    assert Payment.objects.get().state == PaymentState.REFUNDED


def test_capture_found_by_the_void_is_refunded_if_the_worker_dies_before(monkeypatch):
    reservation = make_pending_booking()
    SandboxGateway().capture(Payment.objects.get().key)
    with monkeypatch.context() as patched:
        patched.setattr(payment_recovery, "_create_full_refund", Mock(side_effect=RuntimeError))
        cancellation.cancel(reservation.pk, now=NOW)
    assert Payment.objects.get().state == PaymentState.CAPTURED

    reconcile(at=NOW + 2 * MINUTE)

    assert Payment.objects.get().state == PaymentState.REFUNDED


def test_payment_captured_after_its_cancellation_is_an_inconsistency():
    cancel_while_void_fails(make_pending_booking())

    assert not list(integrity.find_problems(now=NOW + MINUTE))
    assert len(list(integrity.find_problems(now=NOW + 2 * HOUR))) == 1


def test_fee_that_another_process_captured_during_the_cancellation_is_kept():
    """The request to cancel began before the capture, and waited for a lock."""
    fail_once("capture")
    reservation = make_booking()
    late = START - HOUR
    payment_recovery.fulfil_obligations(Payment.objects.get(), now=late + MINUTE)

    cancellation.cancel(reservation.pk, now=late)
    reconcile(at=START)

    assert Payment.objects.get().state == PaymentState.CAPTURED
    assert not list(integrity.find_problems(now=START))


def test_fee_that_an_older_version_captured_later_is_a_question_to_staff():
    """A payment of another reservation, which was cancelled free of charge, is refunded."""
    for start in (START, START + 48 * HOUR):
        booking = make_booking(start=start)
        cancellation.cancel(booking.pk, now=start - HOUR)
    Reservation.objects.filter(pk=booking.pk).update(cancelled_at=NOW + HOUR)
    Payment.objects.update(captured_at=START + 47 * HOUR + SECOND)

    for _ in range(2):
        with pytest.raises(CommandError, match="captured after a late cancellation"):
            reconcile(at=START + 48 * HOUR)
    states = list(Payment.objects.order_by("pk").values_list("state", flat=True))
    assert states == [PaymentState.CAPTURED, PaymentState.REFUNDED]

    # Staff keep it as the fee.
    [statement] = re.findall(r"```sql\n(.*?)```", UPGRADE_PAGE.read_text(), re.DOTALL)
    with connection.cursor() as cursor:
        cursor.execute(statement.replace("1234", str(Payment.objects.earliest("pk").pk)))
    reconcile(at=START + 48 * HOUR)
    assert not list(integrity.find_problems(now=START + 72 * HOUR))
