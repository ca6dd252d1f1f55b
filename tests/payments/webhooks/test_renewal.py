"""Authorizations of requests that nobody answers are renewed before they expire (B16.10)."""

import datetime as dt
import io
from contextlib import suppress

import pytest
import time_machine
from django.core.management import CommandError, call_command

from payments import gateways
from payments.gateways.stripe_models import StripePayment
from payments.models import Payment, UnknownPayment
from reservations.booking import approval, authorization_renewal
from roombook.errors import ServiceUnavailable
from tests.factories_reservations import NOW, make_draft, make_room
from tests.payments.gateway_helpers import authorize
from tests.payments.webhooks.helpers import find_problems, save_card
from tests.reservations.checkout.helpers import pay_with_saved_card

pytestmark = pytest.mark.django_db


# Stripe's authorizations expire after a week.
LATER = NOW + dt.timedelta(days=6, hours=12)


@pytest.fixture
def request_of_ada(ada, stripe_server):
    """A request for a meeting in three weeks, paid with a card that a setup saved."""
    save_card(ada)
    draft = make_draft(ada, make_room(is_live_inventory=False), start=NOW + dt.timedelta(days=21))
    return pay_with_saved_card(draft)


def reconcile(at=LATER):
    with time_machine.travel(at, tick=False), suppress(CommandError):
        call_command("reconcile_payments", stdout=io.StringIO())


def get_statuses(stripe_server):
    return [intent["status"] for intent in stripe_server.intents]


def test_authorization_is_renewed_once_and_captured_once(request_of_ada, stripe_server, send):
    old = Payment.objects.get()

    for _ in range(2):
        reconcile()

    payment = Payment.objects.get()
    assert (payment.state, payment.spare_key, payment.is_spare_due) == (
        "authorized",
        old.key,
        False,
    )
    assert payment.authorized_until > old.authorized_until
    assert get_statuses(stripe_server) == ["canceled", "requires_capture"]
    first, second = stripe_server.intents
    assert stripe_server.calls("/v1/payment_intents/.+/confirm")[1].params["off_session"] == "true"
    for intent in (first, second):
        send(stripe_server.event("payment_intent.amount_capturable_updated", intent))
    with time_machine.travel(LATER, tick=False):
        approval.approve(request_of_ada.pk, now=LATER)
    assert get_statuses(stripe_server) == ["canceled", "succeeded"]
    assert (Payment.objects.get().state, stripe_server.count_captures()) == ("captured", 1)
    assert (find_problems(), UnknownPayment.objects.count()) == ([], 0)


@pytest.mark.parametrize("path", ["confirm$", "cancel$"])
def test_crash_of_a_renewal_leaves_one_authorization(request_of_ada, stripe_server, path):
    # Authorized or voided at Stripe, but the answer is lost.
    stripe_server.fail("reset_after", path)
    stripe_server.fail("conflict", path)
    payment = Payment.objects.get()
    with pytest.raises(ServiceUnavailable), time_machine.travel(LATER, tick=False):
        authorization_renewal.renew_authorization(payment, now=LATER)

    reconcile(LATER + dt.timedelta(minutes=2))

    assert get_statuses(stripe_server).count("requires_capture") == 1
    assert get_statuses(stripe_server).count("canceled") == 1
    payment.refresh_from_db()
    assert (payment.is_spare_due, UnknownPayment.objects.count()) == (False, 0)
    assert stripe_server.intent(payment.key)["status"] == "requires_capture"


def test_request_that_is_answered_meanwhile_keeps_its_authorization(request_of_ada, stripe_server):
    payment = Payment.objects.get()
    with time_machine.travel(LATER, tick=False):
        key, reference = authorization_renewal._begin(payment, now=LATER)
        approval.approve(request_of_ada.pk, now=LATER)
        status = authorize(gateways.get_current_gateway(), key, reference, payment.amount)
        authorization_renewal._exchange_keys(payment, key, status, now=LATER)
        authorization_renewal._void_spare(payment, now=LATER)

    assert get_statuses(stripe_server) == ["succeeded", "canceled"]
    assert (Payment.objects.get().key, stripe_server.count_captures()) == (payment.key, 1)


@pytest.mark.parametrize("change", [{"saved_by_setup": False}, {"last4": "1881"}])
def test_other_cards_are_not_authorized_again(request_of_ada, stripe_server, change):
    # Found to be due before the card was replaced.
    payment = Payment.objects.get()
    card = request_of_ada.user.saved_card
    for name, value in change.items():
        setattr(card, name, value)
    card.save()

    reconcile()
    authorization_renewal.renew_authorization(payment, now=LATER)

    assert get_statuses(stripe_server) == ["requires_capture"]
    assert not Payment.objects.get().is_spare_due


def test_renewal_that_failed_begins_again(request_of_ada, stripe_server):
    for _ in range(2):
        stripe_server.fail("conflict", "POST /v1/payment_intents$")
    old = Payment.objects.get()

    for minutes in (0, 2, 4, 6):
        reconcile(LATER + dt.timedelta(minutes=minutes))

    payment = Payment.objects.get()
    assert (payment.spare_key, payment.is_spare_due) == (old.key, False)
    assert payment.authorized_until > old.authorized_until
    assert get_statuses(stripe_server) == ["canceled", "requires_capture"]


@pytest.mark.parametrize("is_event_first", [False, True])
def test_lost_intent_of_a_renewal_is_voided_or_reported(
    request_of_ada, stripe_server, send, is_event_first
):
    payment = Payment.objects.get()
    reconcile(NOW + dt.timedelta(minutes=1))
    with time_machine.travel(LATER, tick=False):
        key, reference = authorization_renewal._begin(payment, now=LATER)
        authorize(gateways.get_current_gateway(), key, reference, payment.amount)
    # As after a failover: the standby has the payment, and lacks its new intent.
    StripePayment.objects.filter(key=key).delete()
    if is_event_first:
        # A run without the comparison has declared the spare key void.
        gateways.get_current_gateway().void(key)
        Payment.objects.update(is_spare_due=False)
        event = stripe_server.event(
            "payment_intent.amount_capturable_updated", stripe_server.intents[1]
        )
        assert send(event).status_code == 200
        assert UnknownPayment.objects.get().key == key
        UnknownPayment.objects.all().delete()
    else:
        for _ in range(2):
            stripe_server.fail("error", r"GET /v1/payment_intents(\?|$)")

    for minutes in (2, 4, 6):
        reconcile(LATER + dt.timedelta(minutes=minutes))

    if is_event_first:
        assert UnknownPayment.objects.get().key == key
    else:
        assert get_statuses(stripe_server).count("requires_capture") == 1
        assert (Payment.objects.get().is_spare_due, UnknownPayment.objects.count()) == (False, 0)


def test_declined_renewal_changes_nothing_and_is_not_repeated(request_of_ada, stripe_server):
    method = stripe_server.intents[0]["payment_method"]
    stripe_server.test.outcomes[method] = "card_declined/generic_decline"

    for _ in range(2):
        reconcile()

    payment = Payment.objects.get()
    assert (payment.state, payment.is_spare_due) == ("authorized", False)
    assert stripe_server.intent(payment.key)["status"] == "requires_capture"
    assert len(stripe_server.intents) == 2


# --- A restored backup lacks a payment that waits for its customer to confirm it (B16.9) ----------


@pytest.mark.parametrize("is_lost", [True, False])
def test_payment_that_waits_for_no_booking_can_no_longer_be_confirmed(ada, stripe_server, is_lost):
    save_card(ada, "4000002760003184")
    pay_with_saved_card(make_draft(ada, start=NOW + dt.timedelta(days=21)))
    [intent] = stripe_server.intents
    assert intent["status"] == "requires_action"
    if is_lost:
        Payment.objects.all().delete()
        StripePayment.objects.all().delete()

    with time_machine.travel(NOW + dt.timedelta(minutes=5), tick=False):
        call_command("reconcile_payments", stdout=io.StringIO())

    assert intent["status"] == ("canceled" if is_lost else "requires_action")
    assert not UnknownPayment.objects.exists()
