"""Stripe's webhook events: late results, expiring authorizations and disputes."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from accounts.act import Act
from payments import gateway_events, gateways, refunds
from payments.gateways.stripe_models import StripePayment
from payments.models import Dispute, GatewayEvent, Payment, Refund
from reservations.booking import charging
from reservations.booking.cancellation import cancel
from reservations.models.status import Status
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import NOW, make_draft, pay
from tests.payments.gateway_helpers import card
from tests.payments.webhooks.helpers import find_problems
from tests.reservations.checkout.helpers import pay_with_saved_card

pytestmark = pytest.mark.django_db


# --- Late results ---------------------------------------------------------------------------------


@pytest.fixture
def unresolved(stripe_server):
    """Authorized at Stripe, but we never received the answer."""
    ada = UserFactory()
    stripe_server.fail("reset_after", "confirm$")
    stripe_server.fail("conflict", "confirm$")
    reservation = pay(make_draft(ada))
    assert reservation.status == Status.PROCESSING
    return reservation


def test_late_result_ends_the_lease(send, stripe_server, unresolved):
    assert not Payment.objects.stale(NOW).exists()

    event = stripe_server.event(
        "payment_intent.amount_capturable_updated", stripe_server.intents[0]
    )
    assert send(event).status_code == 200

    (payment,) = Payment.objects.stale(datetime.now(UTC))
    charging.resolve_payment(payment, now=NOW)
    unresolved.refresh_from_db()
    assert unresolved.status == Status.CONFIRMED
    assert stripe_server.count_captures() == 1


def test_refund_event_of_an_unresolved_payment_is_to_be_repeated(send, stripe_server, unresolved):
    stripe_server.capture_in_dashboard(stripe_server.intents[0]["id"])
    stripe_server.refund_in_dashboard(stripe_server.intents[0]["id"], 7500)
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])

    assert send(event).status_code == 503

    charging.resolve_payment(Payment.objects.get(), now=NOW)
    assert send(event).status_code == 200
    assert Refund.objects.get().amount == 75
    assert Payment.objects.get().state == "refunded"


@pytest.mark.parametrize(
    ("act", "type_", "state"),
    [
        ("expire_authorization", "payment_intent.canceled", "voided"),
        ("capture_in_dashboard", "payment_intent.succeeded", "captured"),
    ],
)
def test_end_of_an_authorization_at_stripe_is_recorded(
    send, pending_booking, stripe_server, caplog, act, type_, state
):
    intent = stripe_server.intents[0]
    getattr(stripe_server, act)(intent["id"])

    send(stripe_server.event(type_, intent))

    payment = Payment.objects.get()
    assert (payment.state, payment.card_last4) == (state, "4242")
    assert f"is {state}: changed at the gateway, not by us" in caplog.text


def test_contradicting_event_is_logged(send, payment, stripe_server, caplog):
    Payment.objects.update(state="declined", counts=False, captured_at=None, closed_at=NOW)

    assert (
        send(stripe_server.event("payment_intent.succeeded", stripe_server.intents[0])).status_code
        == 200
    )

    assert "records contradict ours" in caplog.text
    assert Payment.objects.get().state == "declined"


# --- Reserved money that runs out -----------------------------------------------------------------


# --- Disputes -------------------------------------------------------------------------------------


def test_new_dispute_is_recorded_and_logged(send, payment, stripe_server, caplog):
    made = stripe_server.dispute(payment.reference, 7500)

    for _ in range(2):
        assert send(stripe_server.event("charge.dispute.created", made)).status_code == 200

    dispute = Dispute.objects.get()
    assert (dispute.payment, dispute.reference) == (payment, made["id"])
    assert (dispute.amount, dispute.currency, dispute.reason) == (75, "USD", "fraudulent")
    assert (dispute.status, dispute.closed_at) == ("needs_response", None)
    assert dispute.respond_by - dispute.opened_at == timedelta(days=7)
    assert dispute.fee == 15
    assert caplog.text.count("disputes 75") == 1
    assert find_problems() == []


@pytest.mark.parametrize("status", ["won", "lost"])
def test_closed_dispute_is_recorded(send, payment, stripe_server, status):
    made = stripe_server.dispute(payment.reference, 7500)
    send(stripe_server.event("charge.dispute.created", made))
    early = dict(made)
    made["status"] = status

    send(stripe_server.event("charge.dispute.closed", made))
    # A late event with an earlier state.
    send(stripe_server.event("charge.dispute.updated", early))

    dispute = Dispute.objects.get()
    assert (dispute.status, dispute.closed_at) == (status, NOW)


def test_fee_that_is_returned_after_a_dispute_was_won_is_recorded(send, payment, stripe_server):
    made = stripe_server.dispute(payment.reference, 7500)
    made["status"] = "won"
    send(stripe_server.event("charge.dispute.closed", made))
    assert Dispute.objects.get().fee == 15

    returned = stripe_server.create_balance_transaction(stripe_server.test, made, 7500, -1500)
    made["balance_transactions"].append(returned)
    send(stripe_server.event("charge.dispute.funds_reinstated", made))

    assert Dispute.objects.get().fee == 0


def test_refresh_of_a_payment_unknown_to_the_gateway_changes_nothing(payment):
    StripePayment.objects.update(key=uuid4())

    assert gateway_events.refresh(payment, now=NOW).state == "captured"


def test_unreadable_dispute_is_logged_and_not_repeated(send, payment, stripe_server, caplog):
    made = stripe_server.dispute(payment.reference, 7500)
    event = stripe_server.event("charge.dispute.created", dict(made, id="dp_unknown"))

    response = send(event)

    assert (response.status_code, response.content) == (200, b"Ignored.\n")
    assert "charge.dispute.created" in caplog.text
    assert "cannot be processed" in caplog.text
    assert not Dispute.objects.exists()
    # If staff resend it, it is processed again.
    assert not GatewayEvent.objects.exists()


# --- Stripe's webhook events about refunds --------------------------------------------------------


@pytest.mark.parametrize("type_", ["charge.refunded", "refund.created", "charge.refund.updated"])
def test_refund_made_in_the_dashboard_is_recorded(send, payment, stripe_server, type_):
    made = stripe_server.refund_in_dashboard(payment.reference, 2500)
    about = stripe_server.charges[0] if type_ == "charge.refunded" else made

    assert send(stripe_server.event(type_, about)).status_code == 200
    # Stripe sends several events about it, each of them twice.
    for again in (type_, "refund.updated"):
        send(stripe_server.event(again, about))

    refund = Refund.objects.get()
    assert (refund.amount, refund.state) == (Decimal("25.00"), "done")
    assert made["id"] in refund.reason
    payment.refresh_from_db()
    assert (payment.state, refunds.get_refundable_amount(payment)) == (
        "captured",
        Decimal("50.00"),
    )
    assert find_problems() == []


def test_event_about_our_own_refund_changes_nothing(send, reservation, payment, stripe_server):
    cancel(Act(reservation.user, NOW), reservation.pk)

    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))
    send(stripe_server.event("refund.created", stripe_server.refunds[0]))

    refund = Refund.objects.get()
    assert (refund.amount, refund.state, refund.reason) == (75, "done", "Cancelled")


def test_event_completes_our_unanswered_refund(send, reservation, payment, stripe_server):
    stripe_server.fail("error", "POST /v1/refunds")
    cancel(Act(reservation.user, NOW), reservation.pk)
    assert Refund.objects.get().state == "started"
    stripe_server.test.idempotent_requests.clear()
    gateways.get_current_gateway().refund(
        key=payment.key, refund_key=Refund.objects.get().key, amount=Decimal("75.00")
    )

    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))

    assert Refund.objects.get().state == "done"
    payment.refresh_from_db()
    assert payment.state == "refunded"
    assert find_problems() == []


def test_refund_returned_by_the_bank_is_refused_and_logged(
    send, reservation, payment, stripe_server, caplog
):
    cancel(Act(reservation.user, NOW), reservation.pk)
    stripe_server.fail_refund(stripe_server.refunds[0])

    send(stripe_server.event("refund.failed", stripe_server.refunds[0]))

    payment.refresh_from_db()
    assert (payment.state, payment.closed_at) == ("captured", None)
    assert Refund.objects.get().state == "refused"
    assert refunds.get_refundable_amount(payment) == 75
    assert "75.00 must be refunded another way" in caplog.text
    with pytest.raises(gateways.base.GatewayRefused):
        refunds.execute_refund(Refund.objects.get(), now=NOW)


def test_manual_refund_is_kept_when_the_failure_is_reported_again(
    send, reservation, payment, stripe_server
):
    cancel(Act(reservation.user, NOW), reservation.pk)
    stripe_server.fail_refund(stripe_server.refunds[0])
    send(stripe_server.event("refund.failed", stripe_server.refunds[0]))

    refunds.mark_refunded_manually(Refund.objects.get(), reason="Bank transfer", now=NOW)
    send(stripe_server.event("refund.updated", stripe_server.refunds[0]))

    assert Refund.objects.get().state == "outside"
    payment.refresh_from_db()
    assert payment.state == "refunded"
    assert find_problems() == []


# --- Events about payments that wait until the customer confirms them at the bank (B21.3) ---------


def test_event_of_a_confirmation_books_at_once(send, stripe_server, ada):
    always_asks = card("4000002760003184")
    stored = gateways.get_current_gateway().store_card(always_asks, customer=str(ada.pk))
    SavedCardFactory(user=ada, gateway="stripe", reference=stored, saved_by_setup=True)
    waiting = pay_with_saved_card(make_draft(ada))
    assert waiting.waiting_payment
    intent = stripe_server.act_at_bank(confirms=True)

    for _ in range(2):
        event = stripe_server.event("payment_intent.amount_capturable_updated", intent)
        assert send(event).status_code == 200

    waiting.refresh_from_db()
    assert waiting.status == Status.CONFIRMED
    assert stripe_server.count_captures() == 1
    send(stripe_server.event("payment_intent.succeeded", intent))
    assert (Payment.objects.get().state, find_problems()) == ("captured", [])
