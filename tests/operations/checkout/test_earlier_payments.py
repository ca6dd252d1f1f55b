"""POST /api/reservations/checkout: after a payment that was refunded at the gateway

The worker of the first checkout died, and staff captured and refunded its payment in the gateway's
dashboard. So the reservation is New again, and its payment is refunded.
"""

from dataclasses import replace
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from payments import gateway_events, refunds
from payments.gateways import sandbox
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState, RefundState
from reservations.booking import alerts, integrity
from reservations.models.status import Status
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import CARD, HOUR, MINUTE, NOW, make_draft, show_price
from tests.gateway_faults import FaultKind, add_fault
from tests.http import post
from tests.operations.helpers import status_of
from tests.reservations.rescheduling_helpers import adjust

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

CANCEL = "/api/reservations/cancel"
LATER = NOW + 2 * MINUTE


@pytest.fixture
def drafted(ada, client, token, time_machine):
    """The draft, New again."""
    draft = make_draft(ada)
    add_fault(operation="authorize", kind=FaultKind.TIMEOUT_AFTER, times=1)
    fields = {"Token": token, "ReservationId": draft.pk, "PaymentInfo": CARD}
    assert post(client, "/api/reservations/checkout", fields).json()["Status"] == "Processing"
    payment = Payment.objects.get()
    SandboxGateway().capture(payment.key)
    SandboxGateway().refund(key=payment.key, refund_key=uuid4(), amount=payment.amount)
    time_machine.move_to(LATER, tick=False)
    call_command("reconcile_payments", stdout=StringIO())
    assert (Payment.objects.get().state, status_of(draft)) == (PaymentState.REFUNDED, Status.NEW)
    return draft


@pytest.fixture
def bank_returns_refund(monkeypatch):
    """Let the bank return the refund, and receive the event about it."""

    def return_refund():
        convert = sandbox.to_gateway_refund
        monkeypatch.setattr(
            sandbox, "to_gateway_refund", lambda refund: replace(convert(refund), failed=True)
        )
        SandboxPayment.objects.update(state="captured", refunded=0)
        return gateway_events.refresh_with_refunds(Payment.objects.get(), now=LATER)

    return return_refund


def test_free_booking_after_a_refunded_payment_says_that_nothing_is_to_pay(check_out, drafted):
    adjust(drafted, AdministratorFactory(), -75, now=LATER)
    show_price(drafted)

    for _ in range(2):
        message = check_out().json()["ConfirmationMessage"]
        assert message.endswith("There was nothing to pay.")


def find_checks():
    problems = integrity.find_problems(now=LATER + 2 * HOUR)
    return {str(each).partition(":")[0] for each in problems}


@pytest.mark.parametrize("next_step", ["none", "book", "cancel"])
def test_returned_refund_of_a_draft_is_owed_until_staff_have_made_it(
    client, token, check_out, drafted, bank_returns_refund, next_step
):
    refund = bank_returns_refund().refunds.get()
    assert refund.state == RefundState.REFUSED
    if next_step == "book":
        assert check_out(PaymentInfo=CARD).json()["Status"] == "Confirmed"
        states = list(Payment.objects.order_by("pk").values_list("state", flat=True))
        assert states == [PaymentState.REFUNDED, PaymentState.CAPTURED]
    elif next_step == "cancel":
        cancel = {"Token": token, "ReservationId": drafted.pk}
        messages = {post(client, CANCEL, cancel).json()["Message"] for _ in range(2)}
        assert messages == {
            "The reservation is cancelled: what was charged was refunded, but the bank returned it."
            " We will refund it again."
        }
    with pytest.raises(CommandError, match="the gateway refused a refund"):
        call_command("reconcile_payments", stdout=StringIO())
    assert list(alerts.find_refused_refunds(Payment.objects.all()))
    assert "refunds off their payment" in find_checks()

    refunds.mark_refunded_manually(refund, reason="In cash", now=LATER)

    call_command("reconcile_payments", stdout=StringIO())
    assert not find_checks()


def test_checkout_while_an_earlier_payment_is_captured_is_refused(check_out, drafted):
    """As after an upgrade: an older version took a payment with a returned refund for captured."""
    Payment.objects.update(state=PaymentState.CAPTURED, closed_at=None)

    response = check_out(PaymentInfo=CARD)

    assert response.status_code == 409
    assert response.json()["Error"] == {
        "Summary": "ReservationNotOpen",
        "Message": "An earlier payment of this reservation has not been returned yet.",
    }
    assert status_of(drafted) == Status.NEW
