"""Stripe's webhook events: signed, repeated, and about other payments."""

import json
import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
import stripe
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from payments import gateway_events
from payments.gateways.stripe_models import StripePayment
from payments.models import GatewayCheckpoint, GatewayEvent, Payment, Refund, UnknownPayment
from payments.unknown_payments import get_unresolved
from payments.webhooks import EVENT_HANDLERS, SETUP_EVENTS
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import NOW
from tests.payments.webhooks.helpers import PATH, SECRET

pytestmark = pytest.mark.django_db


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


def test_event_of_another_type_is_ignored(send, payment, stripe_server):
    event = stripe_server.event("payment_intent.created", stripe_server.intents[0])
    assert send(event).status_code == 200
    assert not GatewayEvent.objects.exists()


def test_deploy_guide_lists_the_event_types():
    guide = (Path(__file__).parents[3] / "deploy/README.md").read_text()
    kinds = "payment_intent|charge|refund|setup_intent|checkout"
    listed = re.findall(rf"\b(?:{kinds})\.[a-z_.]+\b", guide)

    assert sorted(listed) == sorted([*EVENT_HANDLERS, *SETUP_EVENTS])


@pytest.mark.parametrize("type_", sorted(EVENT_HANDLERS))
def test_event_of_a_foreign_intent_is_accepted(send, stripe_server, type_):
    other = {"id": "pi_other", "object": "payment_intent", "metadata": {}, "livemode": False}
    if not type_.startswith("payment_intent"):
        other |= {"object": "charge", "payment_intent": None}

    assert send(stripe_server.event(type_, other)).status_code == 200


@pytest.fixture
def lost_payment(payment):
    """A payment of a booking that a restored backup lacks."""
    Reservation.objects.update(status=Status.NEW, holds_slot=False, booked_at=None)
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
    with pytest.raises(CommandError, match=r"\$75\.00 .*for no booking here"):
        call_command("reconcile_payments")
    with pytest.raises(CommandError, match=r"for no booking here; refunded"):
        call_command("reconcile_payments", release=True)
    assert [refund["amount"] for refund in stripe_server.refunds] == [7500]
    call_command("reconcile_payments")


def test_released_payment_whose_refund_the_bank_returns_is_reported_and_released_again(
    send, lost_payment, stripe_server, caplog
):
    # The checkpoint is newer than the payment, so only events lead to it.
    GatewayCheckpoint.objects.create(gateway="stripe", compared_until=NOW + timedelta(days=1))
    send(stripe_server.event("payment_intent.succeeded", stripe_server.intents[0]))
    with pytest.raises(CommandError, match="for no booking here; refunded"):
        call_command("reconcile_payments", release=True)
    caplog.clear()
    [returned] = stripe_server.refunds
    # The events of our own refund change nothing.
    send(stripe_server.event("refund.created", returned))
    send(stripe_server.event("charge.refunded", stripe_server.charges[0]))
    assert UnknownPayment.objects.get().resolution == "refunded"
    assert "is not in our database" not in caplog.text

    stripe_server.fail_refund(returned)
    assert send(stripe_server.event("refund.failed", returned)).status_code == 200

    assert "is not in our database" in caplog.text
    [unknown] = get_unresolved()
    assert (unknown.amount, unknown.resolution) == (75, "")
    with pytest.raises(CommandError, match="for no booking here; refunded"):
        call_command("reconcile_payments", release=True)
    assert [each["status"] for each in stripe_server.refunds] == ["failed", "succeeded"]


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
