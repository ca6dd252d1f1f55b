"""Stripe's webhook events: signed, repeated, out of order, and about other things."""

import json
import logging
import re
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
import stripe
import time_machine
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from payments import gateway_events, gateways, refunds
from payments.gateways.stripe_models import StripePayment
from payments.models import (
    Dispute,
    GatewayCheckpoint,
    GatewayEvent,
    Payment,
    Refund,
    UnknownPayment,
)
from payments.webhooks import EVENT_HANDLERS
from reservations.booking import alerts, approval, checkout, integrity, payment_recovery
from reservations.booking.cancellation import cancel
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import NOW, make_draft, make_payment_method, make_room

pytestmark = pytest.mark.django_db

PATH = "/webhooks/stripe"
SECRET = "whsec_roombook"


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def reservation(stripe_server):
    ada = UserFactory()
    return checkout.check_out(
        make_draft(ada).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )


@pytest.fixture
def payment(reservation):
    return Payment.objects.get()


@pytest.fixture
def pending_booking(stripe_server):
    """A Pending reservation: authorized, not captured."""
    ada = UserFactory()
    room = make_room(is_live_inventory=False)
    return checkout.check_out(
        make_draft(ada, room).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )


@pytest.fixture
def send(client):
    """Send an event as Stripe does, with a valid signature by default."""

    def send(event, *, secret=SECRET, at=None, payload=None, signature=None):
        body = json.dumps(event)
        signature = signature or stripe.WebhookSignature.generate_signature_header(
            body, secret, int(at or time.time())
        )
        return client.post(
            PATH,
            data=payload or body,
            content_type="application/json",
            headers={"Stripe-Signature": signature},
        )

    return send


def find_problems():
    return [str(each) for each in integrity.find_problems(now=NOW)]


# --- Who may send --------------------------------------------------------------------------------


def test_signed_event_is_processed_once(send, payment, stripe_server):
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])

    for _ in range(3):
        response = send(event)
        assert (response.status_code, response.content) == (200, b"Noted.\n")
    event_row = GatewayEvent.objects.get()
    assert (event_row.reference, event_row.type) == (event["id"], "charge.refunded")


def test_event_with_invalid_signature_is_refused(send, client, payment, stripe_server):
    stripe_server.refund_in_dashboard(payment.reference, 7500)
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])
    good = stripe.WebhookSignature.generate_signature_header(json.dumps(event), SECRET)
    tampered = json.dumps(event).replace("7500", "7501")

    refused = [
        send(event, secret="whsec_other"),
        send(event, payload=tampered, signature=good),
        # A replay of a recorded event.
        send(event, at=time.time() - 301),
        send(event, signature="t=1,v1=00"),
        send(event, signature="nonsense"),
        send(event, signature=good.replace("v1=", "v0=")),
        client.post(PATH, data=json.dumps(event), content_type="application/json"),
        client.post(
            PATH, data=b"\xff", content_type="application/json", headers={"Stripe-Signature": good}
        ),
    ]

    assert {response.status_code for response in refused} == {400}
    assert not Refund.objects.exists()
    assert not GatewayEvent.objects.exists()


@pytest.mark.parametrize("event", [[], 1, "x", None, {}, {"id": "evt_1"}, {"data": {"object": []}}])
def test_signed_event_of_another_shape_is_refused(send, stripe_server, event):
    assert send(event).status_code == 400


def test_webhook_accepts_only_posts_and_needs_no_csrf_token(stripe_server):
    strict = Client(enforce_csrf_checks=True)
    assert strict.get(PATH).status_code == 405
    assert strict.post(PATH, data=b"{}", content_type="application/json").status_code == 400


def test_webhook_without_secret_is_not_found(client, settings):
    settings.STRIPE_WEBHOOK_SECRET = ""

    assert client.post(PATH, data=b"{}", content_type="application/json").status_code == 404


@pytest.mark.parametrize("type_", ["customer.created", "payment_intent.created", "invoice.paid"])
def test_event_of_another_type_is_ignored(send, payment, stripe_server, type_):
    assert send(stripe_server.event(type_, stripe_server.intents[0])).status_code == 200
    assert not GatewayEvent.objects.exists()


def test_deploy_guide_lists_the_event_types():
    guide = (Path(__file__).parents[2] / "deploy/README.md").read_text()
    listed = re.findall(r"\b(?:payment_intent|charge|refund)\.[a-z_.]+\b", guide)

    assert sorted(listed) == sorted(EVENT_HANDLERS)


@pytest.mark.parametrize("type_", sorted(EVENT_HANDLERS))
def test_event_of_a_foreign_intent_is_accepted(send, stripe_server, type_):
    other = {"id": "pi_other", "object": "payment_intent", "metadata": {}, "livemode": False}
    if not type_.startswith("payment_intent"):
        other |= {"object": "charge", "payment_intent": None}

    assert send(stripe_server.event(type_, other)).status_code == 200


@pytest.fixture
def lost_payment(payment):
    """A payment of a booking that a restored backup lacks."""
    Reservation.objects.update(status=Status.NEW, holds_slot=False)
    Payment.objects.all().delete()
    StripePayment.objects.all().delete()
    return payment


@pytest.mark.parametrize("type_", ["payment_intent.succeeded", "charge.refunded"])
def test_event_of_an_unknown_payment_is_logged_and_kept(
    send, lost_payment, stripe_server, caplog, type_
):
    about = stripe_server.intents[0] if "intent" in type_ else stripe_server.charges[0]

    for _ in range(2):
        assert send(stripe_server.event(type_, about)).status_code == 200

    assert f"{lost_payment.reference} is not in our database" in caplog.text
    unknown = UnknownPayment.objects.get()
    assert (unknown.key, unknown.reference) == (lost_payment.key, lost_payment.reference)
    # The checkpoint is newer than the payment, so only the event leads to it.
    GatewayCheckpoint.objects.create(gateway="stripe", compared_until=NOW + timedelta(days=1))
    with pytest.raises(CommandError, match=r"75\.00 USD .*for no booking here"):
        call_command("reconcile_payments")
    with pytest.raises(CommandError, match=r"for no booking here; refunded"):
        call_command("reconcile_payments", release=True)
    assert [refund["amount"] for refund in stripe_server.refunds] == [7500]
    call_command("reconcile_payments")


def test_late_event_of_a_voided_payment_is_forgotten(send, pending_booking, stripe_server):
    approval.decline(pending_booking.pk, now=NOW)
    event = stripe_server.event(
        "payment_intent.amount_capturable_updated", stripe_server.intents[0]
    )
    assert send(event).status_code == 200
    assert UnknownPayment.objects.exists()

    call_command("reconcile_payments")

    assert not UnknownPayment.objects.exists()


def test_event_of_an_unknown_payment_is_not_reported_before_the_gateway_answers(
    send, lost_payment, stripe_server
):
    send(stripe_server.event("payment_intent.succeeded", stripe_server.intents[0]))
    GatewayCheckpoint.objects.create(gateway="stripe", compared_until=NOW + timedelta(days=1))
    stripe_server.fail("error", "GET /v1/payment_intents/")

    call_command("reconcile_payments")
    with pytest.raises(CommandError, match="for no booking here"):
        call_command("reconcile_payments")


def test_event_of_another_deployment_is_ignored(send, lost_payment, stripe_server, settings):
    settings.PUBLIC_URL = "https://rooms.example"
    stripe_server.intents[0]["metadata"]["roombook_site"] = "https://other.example"

    send(stripe_server.event("payment_intent.succeeded", stripe_server.intents[0]))

    assert not UnknownPayment.objects.exists()


def test_event_of_a_payment_without_its_intent_is_processed(send, payment, stripe_server):
    """After a restore to the time between the two rows of a payment."""
    StripePayment.objects.all().delete()
    Payment.objects.update(state="authorized", captured_at=None)

    event = stripe_server.event("payment_intent.succeeded", stripe_server.intents[0])
    assert send(event).status_code == 200

    assert Payment.objects.get().state == "captured"
    assert not UnknownPayment.objects.exists()


def test_event_without_database_is_to_be_repeated(send, payment, stripe_server, monkeypatch):
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])

    def away(*_):
        raise OperationalError("the server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(gateway_events, "is_processed", away)
        assert send(event).status_code == 503
    assert send(event).status_code == 200


def test_event_without_answer_of_stripe_is_to_be_repeated(send, payment, stripe_server):
    stripe_server.refund_in_dashboard(payment.reference, 7500)
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])
    stripe_server.fail("rate_limit", "GET /v1/refunds")

    assert send(event).status_code == 503
    assert not GatewayEvent.objects.exists()
    assert send(event).status_code == 200
    assert Refund.objects.count() == 1


def test_old_events_are_deleted(send, payment, stripe_server):
    GatewayEvent.objects.create(reference="evt_old", type="x", received_at=NOW - timedelta(days=31))
    recent = GatewayEvent.objects.create(
        reference="evt_new", type="x", received_at=NOW - timedelta(days=29)
    )

    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))

    assert set(GatewayEvent.objects.values_list("type", flat=True)) == {"x", "charge.refunded"}
    assert recent.reference in set(GatewayEvent.objects.values_list("reference", flat=True))


# --- Refunds -------------------------------------------------------------------------------------


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


def test_full_refund_in_the_dashboard_marks_the_payment_refunded(send, payment, stripe_server):
    for amount in (2500, 5000):
        stripe_server.refund_in_dashboard(payment.reference, amount)
    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))

    payment.refresh_from_db()
    assert payment.state == "refunded"
    assert Refund.objects.count() == 2
    # Staff refunded everything as a goodwill gesture, and the booking stands.
    assert find_problems() == []


def test_event_about_our_own_refund_changes_nothing(send, reservation, payment, stripe_server):
    cancel(reservation.pk, user=reservation.user, now=NOW)

    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))
    send(stripe_server.event("refund.created", stripe_server.refunds[0]))

    refund = Refund.objects.get()
    assert (refund.amount, refund.state, refund.reason) == (75, "done", "Cancelled")


def test_event_completes_our_unanswered_refund(send, reservation, payment, stripe_server):
    stripe_server.fail("error", "POST /v1/refunds")
    cancel(reservation.pk, user=reservation.user, now=NOW)
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


def test_cancellation_after_a_dashboard_refund_refunds_the_rest(
    send, reservation, payment, stripe_server
):
    made = stripe_server.refund_in_dashboard(payment.reference, 2500)
    send(stripe_server.event("refund.created", made))

    assert cancel(reservation.pk, user=reservation.user, now=NOW).refund == 50
    assert [refund["amount"] for refund in stripe_server.refunds] == [2500, 5000]
    payment.refresh_from_db()
    assert payment.state == "refunded"


def test_refund_returned_by_the_bank_is_refused_and_logged(
    send, reservation, payment, stripe_server, caplog
):
    cancel(reservation.pk, user=reservation.user, now=NOW)
    stripe_server.fail_refund(stripe_server.refunds[0])

    send(stripe_server.event("refund.failed", stripe_server.refunds[0]))

    payment.refresh_from_db()
    assert (payment.state, payment.settled_at) == ("captured", None)
    assert Refund.objects.get().state == "refused"
    assert refunds.get_refundable_amount(payment) == 75
    assert "75.00 must be refunded another way" in caplog.text
    with pytest.raises(gateways.base.GatewayRefused):
        refunds.execute_refund(Refund.objects.get(), now=NOW)


def test_manual_refund_is_kept_when_the_failure_is_reported_again(
    send, reservation, payment, stripe_server
):
    cancel(reservation.pk, user=reservation.user, now=NOW)
    stripe_server.fail_refund(stripe_server.refunds[0])
    send(stripe_server.event("refund.failed", stripe_server.refunds[0]))

    refunds.mark_refunded_manually(Refund.objects.get(), reason="Bank transfer", now=NOW)
    send(stripe_server.event("refund.updated", stripe_server.refunds[0]))

    assert Refund.objects.get().state == "outside"
    payment.refresh_from_db()
    assert payment.state == "refunded"
    assert find_problems() == []


def test_refund_completed_by_an_event_is_never_done_before_it_was_created(
    send, reservation, payment, stripe_server
):
    stripe_server.fail("reset_after", "POST /v1/refunds")
    stripe_server.fail("conflict", "POST /v1/refunds")
    cancel(reservation.pk, user=reservation.user, now=NOW)
    later = NOW + timedelta(seconds=3)
    assert Refund.objects.update(state="started", done_at=None, created_at=later) == 1

    assert send(stripe_server.event("charge.refunded", stripe_server.charges[0])).status_code == 200

    refund = Refund.objects.get()
    assert (refund.state, refund.done_at) == ("done", later)


# --- Late results --------------------------------------------------------------------------------


@pytest.fixture
def unresolved(stripe_server):
    """Authorized at Stripe, but we never received the answer."""
    ada = UserFactory()
    stripe_server.fail("reset_after", "confirm$")
    stripe_server.fail("conflict", "confirm$")
    reservation = checkout.check_out(
        make_draft(ada).pk, user=ada, payment_method=make_payment_method(), now=NOW
    )
    assert reservation.status == Status.PROCESSING
    return reservation


def test_late_result_ends_the_lease(send, stripe_server, unresolved):
    assert not Payment.objects.stale(NOW).exists()

    event = stripe_server.event(
        "payment_intent.amount_capturable_updated", stripe_server.intents[0]
    )
    assert send(event).status_code == 200

    (payment,) = Payment.objects.stale(datetime.now(UTC))
    payment_recovery.resolve_payment(payment, now=NOW)
    unresolved.refresh_from_db()
    assert unresolved.status == Status.CONFIRMED
    assert stripe_server.count_captures() == 1


def test_refund_event_of_an_unresolved_payment_is_to_be_repeated(send, stripe_server, unresolved):
    stripe_server.capture_in_dashboard(stripe_server.intents[0]["id"])
    stripe_server.refund_in_dashboard(stripe_server.intents[0]["id"], 7500)
    event = stripe_server.event("charge.refunded", stripe_server.charges[0])

    assert send(event).status_code == 503

    payment_recovery.resolve_payment(Payment.objects.get(), now=NOW)
    assert send(event).status_code == 200
    assert Refund.objects.get().amount == 75
    assert Payment.objects.get().state == "refunded"


def test_expired_authorization_is_recorded(send, pending_booking, stripe_server, caplog):
    intent = stripe_server.intents[0]
    stripe_server.expire_authorization(intent["id"])

    send(stripe_server.event("payment_intent.canceled", intent))

    payment = Payment.objects.get()
    assert (payment.state, payment.card_last4) == ("voided", "4242")
    assert "is voided: changed at the gateway, not by us" in caplog.text


def test_capture_in_the_dashboard_is_recorded(send, pending_booking, stripe_server):
    intent = stripe_server.intents[0]
    stripe_server.capture_in_dashboard(intent["id"])

    send(stripe_server.event("payment_intent.succeeded", intent))

    assert Payment.objects.get().state == "captured"
    assert stripe_server.count_captures() == 1


def test_event_without_a_change_logs_nothing(send, payment, stripe_server, caplog):
    caplog.set_level(logging.WARNING)
    for type_ in ("payment_intent.amount_capturable_updated", "payment_intent.succeeded"):
        assert send(stripe_server.event(type_, stripe_server.intents[0])).status_code == 200

    payment.refresh_from_db()
    assert payment.state == "captured"
    assert caplog.text == ""


def test_contradicting_event_is_logged(send, payment, stripe_server, caplog):
    Payment.objects.update(state="declined")

    assert (
        send(stripe_server.event("payment_intent.succeeded", stripe_server.intents[0])).status_code
        == 200
    )

    assert "records contradict ours" in caplog.text
    assert Payment.objects.get().state == "declined"


# --- Reserved money that runs out ----------------------------------------------------------------


def test_expiring_authorization_is_reported_a_day_before(pending_booking):
    payment = Payment.objects.get()
    until = payment.authorized_until
    assert until - NOW == timedelta(days=7)

    def find(now):
        return [found for found, _ in alerts.find_expiring_authorizations(payments, now=now)]

    payments = Payment.objects.all()
    assert find(until - timedelta(hours=25)) == []
    assert find(until - timedelta(hours=24)) == [payment]
    assert find(until + timedelta(days=9)) == [payment]


def test_captured_payment_is_not_reported_as_expiring(payment):
    found = alerts.find_expiring_authorizations(Payment.objects.all(), now=NOW + timedelta(days=30))
    assert list(found) == []


# --- Disputes ------------------------------------------------------------------------------------


def test_new_dispute_is_recorded_and_logged(send, payment, stripe_server, caplog, client):
    made = stripe_server.dispute(payment.reference, 7500)

    for _ in range(2):
        assert send(stripe_server.event("charge.dispute.created", made)).status_code == 200

    dispute = Dispute.objects.get()
    assert (dispute.payment, dispute.reference) == (payment, made["id"])
    assert (dispute.amount, dispute.currency, dispute.reason) == (75, "USD", "fraudulent")
    assert (dispute.status, dispute.closed_at) == ("needs_response", None)
    assert dispute.respond_by - dispute.opened_at == timedelta(days=7)
    assert caplog.text.count("disputes 75") == 1
    assert find_problems() == []

    client.force_login(AdministratorFactory())
    for page in (
        reverse("admin:payments_dispute_changelist"),
        reverse("admin:payments_dispute_change", args=[dispute.pk]),
        reverse("admin:payments_payment_change", args=[payment.pk]),
    ):
        assert "needs_response" in client.get(page).content.decode()


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


def test_dispute_events_may_arrive_out_of_order(send, payment, stripe_server):
    made = stripe_server.dispute(payment.reference, 7500)
    made["status"] = "lost"

    send(stripe_server.event("charge.dispute.closed", made))

    assert Dispute.objects.get().closed_at == NOW


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
