"""After a crash, `reconcile_payments` makes payments and bookings consistent again."""

import datetime as dt
from decimal import Decimal

import pytest
import time_machine
from django.core.management import CommandError

from accounts.act import Act
from payments import refunds, setups
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway, confirm_setup
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment
from payments.models import Payment, PaymentSetup, PaymentState, Refund, RefundState, SavedCard
from reservations.booking import cancellation
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import NOW, make_booking, make_pending_booking
from tests.gateway_faults import FaultKind, add_fault, clear_faults
from tests.payments.gateway_helpers import card

pytestmark = pytest.mark.django_db

LATER = NOW + dt.timedelta(minutes=5)
NOTHING = "0 payments processed.\n"


@pytest.fixture
def fails():
    """Make an operation of the gateway fail, always or the given number of times."""

    def fails(operation, kind=FaultKind.TIMEOUT_BEFORE, times=None):
        return add_fault(operation=operation, kind=kind, times=times)

    return fails


def states():
    """Return the states of the reservation and the payment."""
    return (Reservation.objects.get().status, Payment.objects.get().state)


@pytest.mark.parametrize(
    ("make", "kind", "state", "status"),
    [
        (make_booking, FaultKind.TIMEOUT_AFTER, "captured", Status.CONFIRMED),
        (make_booking, FaultKind.TIMEOUT_BEFORE, "voided", Status.NEW),
        (make_pending_booking, FaultKind.TIMEOUT_AFTER, "authorized", Status.PENDING),
    ],
)
def test_unresolved_payment_gets_the_state_that_the_gateway_has(
    run, reconcile, fails, make, kind, state, status
):
    fails("authorize", kind, times=1)
    reservation = make()
    # As long as the lease of its worker lasts, it is left alone.
    with time_machine.travel(NOW + dt.timedelta(seconds=30), tick=False):
        assert run("reconcile_payments") == NOTHING
    assert states() == (Status.PROCESSING, PaymentState.STARTED)

    said = reconcile().splitlines()

    payment = f"Payment {Payment.objects.get().pk} of reservation {reservation.pk}, $75.00"
    assert said[0].startswith(f"[unknown 1/1] {payment}: ")
    assert said[-1] == f"1 payment processed: 1 {state}."
    assert states() == (status, state)
    at_gateway = SandboxPayment.objects.get()
    assert (at_gateway.state, at_gateway.captures) == (state, int(state == "captured"))
    assert reconcile() == NOTHING


@pytest.mark.parametrize(
    ("operation", "left"), [("authorize", "unknown"), ("capture", "due"), ("refund", "to refund")]
)
def test_gateway_timeouts_over_a_long_time_raise_an_alert(reconcile, fails, operation, left):
    fails(operation)
    reservation = make_booking()
    if operation == "refund":
        cancellation.cancel(Act(None, NOW), reservation.pk)
    fails("lookup")

    assert reconcile().endswith("1 payment processed: 1 no answer.\n")
    with pytest.raises(CommandError, match=r"1 problem needs attention:\n.*does not answer"):
        reconcile(at=NOW + dt.timedelta(minutes=17))
    clear_faults()

    assert left in reconcile()
    assert reconcile() == NOTHING


def test_failed_payment_does_not_stop_the_others(reconcile, fails, monkeypatch, caplog):
    fails("capture", times=3)
    refused, broken, good = make_booking(), make_booking(), make_booking()
    capture = SandboxGateway.capture
    errors = {
        refused.payments.get().key: GatewayRefused("This authorization is over."),
        broken.payments.get().key: ZeroDivisionError(),
    }

    def fail(self, key):
        if key in errors:
            raise errors[key]
        return capture(self, key)

    monkeypatch.setattr(SandboxGateway, "capture", fail)

    with pytest.raises(CommandError) as problem:
        reconcile()

    assert str(problem.value).splitlines() == [
        "2 problems need attention:",
        *(
            f"  Payment {each.payments.get().pk} of reservation {each.pk}, $75.00: {text}"
            for each, text in (
                (refused, "This authorization is over."),
                (broken, "ZeroDivisionError, see the log."),
            )
        ),
    ]
    assert "could not be processed" in caplog.text
    assert good.payments.get().state == PaymentState.CAPTURED


def test_expired_authorization_needs_attention_until_resolved(reconcile, fails):
    fails("capture", times=1)
    reservation = make_booking()
    SandboxPayment.objects.update(state="voided")

    with pytest.raises(CommandError, match=r"voided before it was captured.*Confirmed"):
        reconcile()
    with pytest.raises(CommandError, match=r"voided before it was captured.*Confirmed"):
        reconcile()
    cancellation.cancel(Act(None, LATER), reservation.pk)

    assert reconcile() == NOTHING


def test_request_with_expiring_authorization_needs_attention(reconcile):
    make_pending_booking()
    Payment.objects.update(authorized_until=NOW + dt.timedelta(days=3))
    assert reconcile() == NOTHING

    Payment.objects.update(authorized_until=NOW + dt.timedelta(hours=20))
    with pytest.raises(CommandError, match="the request is not answered"):
        reconcile()


@pytest.mark.parametrize("is_known", [False, True])
def test_payment_captured_without_a_booking_is_refunded(reconcile, is_known):
    reservation = make_booking()
    Reservation.objects.filter(pk=reservation.pk).update(status=Status.DECLINED, holds_slot=False)
    Payment.objects.update(counts=False)
    if not is_known:
        Payment.objects.update(state="authorized", captured_at=None)

    assert ("[without booking 1/1]" if is_known else "[due 1/1]") in reconcile()

    assert states() == (Status.DECLINED, PaymentState.REFUNDED)
    assert reconcile() == NOTHING


def test_refused_refund_is_requested_once_and_reported(reconcile):
    reservation = make_booking()
    Reservation.objects.filter(pk=reservation.pk).update(status=Status.DECLINED, holds_slot=False)
    Payment.objects.update(counts=False)
    SandboxPayment.objects.update(refunded=Decimal(75))

    for _ in range(2):
        with pytest.raises(CommandError, match="1 problem needs attention"):
            reconcile()

    assert Refund.objects.get().state == RefundState.REFUSED


def test_gateway_is_not_called_again_after_two_timeouts(reconcile, fails):
    fails("capture")
    for _ in range(4):
        make_booking()

    said = reconcile().splitlines()

    assert said[1].startswith("[due 2/4]")
    assert said[2:] == [
        "2 payments processed: 2 no answer.",
        "The gateway does not answer: 2 payments left for the next run.",
    ]


def test_refusal_and_error_between_timeouts_are_answers(reconcile, fails, monkeypatch):
    fails("capture", times=5)
    for _ in range(5):
        make_booking()
    timeout = GatewayUnavailable
    answers = iter([timeout, GatewayRefused("No."), timeout, ZeroDivisionError, timeout])

    def answer(self, key):
        raise next(answers)

    monkeypatch.setattr(SandboxGateway, "capture", answer)

    with pytest.raises(CommandError, match="2 problems need attention"):
        reconcile()
    assert not list(answers)


def test_refused_refund_needs_attention_until_refunded(reconcile):
    reservation = make_booking()
    payment = reservation.payments.get()
    SandboxPayment.objects.update(refunded=Decimal(75))
    cancellation.cancel(Act(None, NOW), reservation.pk)
    assert Refund.objects.get().state == RefundState.REFUSED

    with pytest.raises(CommandError, match=r"refused a refund of \$75\.00"):
        reconcile()
    SandboxPayment.objects.update(refunded=0)
    refunds.create_refund(payment, amount=Decimal(25), reason="Manually", now=LATER)
    with pytest.raises(CommandError, match=r"refused a refund of \$75\.00"):
        reconcile()
    refunds.create_refund(payment, amount=Decimal(50), reason="Manually", now=LATER)

    assert reconcile().endswith("1 payment processed: 1 refunded.\n")
    assert reconcile() == NOTHING


def test_cancellation_fee_is_not_reported(reconcile):
    """A late cancellation is not refunded."""
    reservation = make_booking()
    late = reservation.start - dt.timedelta(hours=1)
    cancellation.cancel(Act(None, late), reservation.pk)
    assert states() == (Status.CANCELLED, PaymentState.CAPTURED)

    assert reconcile() == NOTHING


# --- Payment setups that nobody completed (B21.2); the state machine has the ways in which they end


@pytest.fixture
def secret(ada):
    setup = setups.create_setup(ada, return_url="https://app.example.com/", now=NOW)
    opened = setups.open_setup(setup, own_page="https://rooms.example.com/")
    return opened.at_gateway.client_secret


def test_card_whose_setup_no_app_completes_is_saved(reconcile, ada, secret):
    confirm_setup(secret, card())

    reconcile(at=NOW + dt.timedelta(hours=1))

    assert SavedCard.objects.get(user=ada).reference == SandboxCard.objects.get().reference
    assert PaymentSetup.objects.get().state == "succeeded"


def test_card_that_was_saved_after_a_setup_stays(reconcile, ada, secret):
    confirm_setup(secret, card())
    kept = SavedCardFactory(user=ada, created_at=NOW + dt.timedelta(minutes=5))

    reconcile(at=NOW + dt.timedelta(hours=1))

    assert SavedCard.objects.get() == kept
    assert PaymentSetup.objects.get().state == "failed"


def test_refused_setups_and_fees_are_logged(reconcile, secret, monkeypatch, caplog):
    make_booking()
    [setup], [payment] = PaymentSetup.objects.all(), Payment.objects.all()

    def refuse(self, reference):
        raise GatewayRefused("The key may not do this.")

    monkeypatch.setattr(SandboxGateway, "cancel_setup", refuse)
    monkeypatch.setattr(SandboxGateway, "fetch_fees", refuse)
    reconcile(at=NOW + dt.timedelta(hours=1))

    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"payment setup {setup.pk} (open) was refused: The key may not do this.",
        f"Payment {payment.pk} of reservation {payment.reservation_id}, $75.00 was refused:"
        " The key may not do this.",
    ]
