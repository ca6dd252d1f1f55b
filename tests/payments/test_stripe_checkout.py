"""Bookings paid with Stripe: through the API and the real SDK, with a fake Stripe server."""

import io
from contextlib import suppress
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection

from payments.gateways import declines
from payments.gateways.stripe import client as stripe_client
from payments.gateways.stripe_models import StripePayment
from payments.models import Payment, PaymentState, SavedCard
from reservations.booking import approval, integrity
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import CARD, NOW, make_draft, make_room
from tests.http import post

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stripe_server")]

LATER = NOW + timedelta(minutes=2)


@pytest.fixture
def clock():
    with time_machine.travel(NOW) as clock:
        yield clock


@pytest.fixture
def ada(clock):
    return UserFactory()


@pytest.fixture
def token(ada):
    return issue_token(ada)


@pytest.fixture
def pay(client, token):
    """A checkout through the API with a card of that number, or with other fields."""

    def pay(reservation, number="4242424242424242", **options):
        means = {"PaymentInfo": CARD | {"CreditCardNumber": number}} if number else {}
        body = {"Token": token, "ReservationId": reservation.pk, **means, **options}
        return post(client, "/api/reservations/checkout", body)

    return pay


def state():
    return Payment.objects.get().state


def assert_consistent(stripe_server):
    """Our data is consistent, with itself and with Stripe's."""
    assert [str(each) for each in integrity.find_problems(now=LATER)] == []
    taken = sum(charge["amount_captured"] for charge in stripe_server.charges)
    ours = sum(p.amount for p in Payment.objects.filter(state__in=["captured", "refunded"]))
    assert taken == ours * 100
    # No authorization is left over.
    reserved = {i["id"] for i in stripe_server.intents if i["status"] == "requires_capture"}
    assert reserved == {p.reference for p in Payment.objects.authorized()}


def test_checkout_charges_once(pay, ada, stripe_server):
    reservation = make_draft(ada)

    answer = pay(reservation).json()

    assert (answer["Status"], answer["IsLive"]) == ("Confirmed", False)
    assert "$75.00 was charged to Visa ending 4242" in answer["ConfirmationMessage"]
    assert pay(reservation).json() == answer
    payment = Payment.objects.get()
    assert (payment.state, payment.gateway, payment.is_live) == ("captured", "stripe", False)
    assert payment.reference == StripePayment.objects.get().intent
    (charge,) = stripe_server.charges
    assert (charge["amount"], charge["currency"], charge["captured"]) == (7500, "usd", True)
    assert_consistent(stripe_server)


def test_declined_checkout_can_be_paid_with_another_card(pay, ada, stripe_server):
    reservation = make_draft(ada)

    response = pay(reservation, "4000000000009995")

    assert response.status_code == 402
    assert response.json()["Error"]["Message"] == declines.INSUFFICIENT_FUNDS
    assert pay(reservation).json()["Status"] == "Confirmed"
    assert stripe_server.count_captures() == 1
    assert_consistent(stripe_server)


def test_card_that_requires_action_is_declined_and_leaves_no_open_intent(pay, ada, stripe_server):
    response = pay(make_draft(ada), "4000002500003155")

    assert response.status_code == 402
    assert response.json()["Error"]["Message"] == declines.REQUIRES_ACTION
    assert [intent["status"] for intent in stripe_server.intents] == ["canceled"]
    assert_consistent(stripe_server)


def test_pending_booking_is_captured_on_approval(pay, ada, stripe_server):
    reservation = make_draft(ada, make_room(is_live_inventory=False))

    assert pay(reservation).json()["Status"] == "Pending"
    assert (state(), stripe_server.count_captures()) == ("authorized", 0)
    assert Payment.objects.get().authorized_until is not None
    assert_consistent(stripe_server)

    approval.approve(reservation.pk, now=LATER)
    assert (state(), stripe_server.count_captures()) == ("captured", 1)
    assert_consistent(stripe_server)


def test_declined_request_voids_the_authorization(pay, ada, stripe_server):
    reservation = make_draft(ada, make_room(is_live_inventory=False))
    pay(reservation)

    approval.decline(reservation.pk, now=LATER)

    assert state() == "voided"
    assert stripe_server.intents[0]["cancellation_reason"] == "requested_by_customer"
    assert_consistent(stripe_server)


def test_approval_after_the_authorization_expired_does_not_book(pay, ada, stripe_server):
    reservation = make_draft(ada, make_room(is_live_inventory=False))
    pay(reservation)
    stripe_server.expire_authorization(stripe_server.intents[0]["id"])

    with suppress(Exception):
        approval.approve(reservation.pk, now=LATER)

    reservation.refresh_from_db()
    assert reservation.status != Status.CONFIRMED
    assert stripe_server.count_captures() == 0


def test_cancellation_refunds_once(pay, ada, client, token, stripe_server):
    reservation = make_draft(ada)
    pay(reservation)
    body = {"Token": token, "ReservationId": reservation.pk}

    answers = [post(client, "/api/reservations/cancel", body).json() for _ in range(2)]

    assert [answer["Refund"] for answer in answers] == [75.0, 75.0]
    assert (state(), len(stripe_server.refunds)) == ("refunded", 1)
    assert stripe_server.refunds[0]["amount"] == 7500
    assert_consistent(stripe_server)


def test_saved_card_pays_later_bookings(pay, ada, client, token, stripe_server):
    room = make_room()
    first = make_draft(ada, room)
    second = make_draft(ada, room, start=first.start + timedelta(days=1))

    pay(first, SavePaymentInfo=True)
    kept = SavedCard.objects.get()
    assert (kept.gateway, kept.last4) == ("stripe", "4242")
    assert kept.reference.startswith("cus_")
    assert pay(second, "", UseSavedPaymentInfo=True).json()["Status"] == "Confirmed"
    assert stripe_server.count_captures() == 2

    post(client, "/api/account/remove-payment-info", {"Token": token})
    assert [m["customer"] for m in stripe_server.test.get_all("payment_method")] == [None] * 2
    assert_consistent(stripe_server)


def test_test_mode_charges_and_stores_nothing(pay, ada, stripe_server):
    reservation = make_draft(ada)

    assert pay(reservation, TestMode=True).json()["Status"] == "New"
    assert pay(reservation, "4000000000000002", TestMode=True).status_code == 402
    assert not Payment.objects.exists()
    assert stripe_server.count_captures() == 0
    assert {intent["status"] for intent in stripe_server.intents} <= {
        "canceled",
        "requires_payment_method",
    }


def test_checkout_refused_by_stripe_releases_everything(pay, ada, stripe_server):
    stripe_server.accepts_card_numbers = False

    response = pay(make_draft(ada))

    assert response.status_code == 409
    assert "You were not charged" in response.json()["Error"]["Message"]
    assert Reservation.objects.get().status == Status.NEW
    assert state() == "voided"


def test_checkout_stores_and_logs_no_card(pay, ada, stripe_server, caplog, capfd):
    caplog.set_level("DEBUG")
    answers = [
        pay(make_draft(ada), "4000000000000002").content,
        pay(make_draft(ada), SavePaymentInfo=True).content,
    ]
    stripe_server.fail("nonsense", "payment_methods$", times=2)
    answers.append(pay(make_draft(ada)).content)

    kept = [caplog.text, *capfd.readouterr(), *(answer.decode() for answer in answers)]
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            kept += [str(row) for row in cursor.fetchall()]
    everything = "\n".join(kept)
    assert "4242424242424242" not in everything
    assert "4000000000000002" not in everything


# --- Whatever dies or hangs, wherever ------------------------------------------------------------

CALLS = ["/v1/payment_methods", "/v1/payment_intents", "/confirm", "/capture"]


class WorkerKilled(BaseException):
    """The worker is killed: no code catches this."""


def reconcile():
    with suppress(CommandError):
        call_command("reconcile_payments", stdout=io.StringIO())


def assert_resolved(reservation, pay, stripe_server):
    """Charged at most once; booked if charged, and bookable if not."""
    reservation.refresh_from_db()
    assert reservation.status in {Status.NEW, Status.CONFIRMED}
    assert_consistent(stripe_server)
    assert stripe_server.count_captures() == (reservation.status == Status.CONFIRMED)
    assert pay(reservation).json()["Status"] == "Confirmed"
    assert stripe_server.count_captures() == 1
    assert_consistent(stripe_server)


@pytest.mark.parametrize("how", ["retry", "reconcile"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ending", CALLS)
def test_crash_at_any_call_is_resolved(
    pay, ada, stripe_server, clock, monkeypatch, ending, when, how
):
    reservation = make_draft(ada)
    true = stripe_client.TimeLimitedHttpClient.request
    with monkeypatch.context() as patch:

        def request(self, method, url, headers, post_data=None):
            if url.endswith(ending) and when == "before":
                raise WorkerKilled
            answer = true(self, method, url, headers, post_data)
            if url.endswith(ending):
                raise WorkerKilled
            return answer

        patch.setattr(stripe_client.TimeLimitedHttpClient, "request", request)
        with pytest.raises(WorkerKilled):
            pay(reservation)
    # During the lease, no other request interferes.
    if ending != "/capture":
        assert pay(reservation).json()["Status"] == "Processing"

    clock.move_to(LATER)
    # Either the client's retry resolves it, or reconcile_payments, which also does due captures.
    if how == "retry" and ending != "/capture":
        pay(reservation)
    else:
        reconcile()
    assert Payment.objects.order_by("pk").first().state != PaymentState.STARTED
    assert_resolved(reservation, pay, stripe_server)


@pytest.mark.parametrize("is_lost", [False, True])
def test_checkout_whose_intent_a_restore_lost_becomes_a_booking(
    pay, ada, stripe_server, clock, is_lost
):
    """The backup is from the middle of the checkout; without the comparison it would be voided."""
    reservation = make_draft(ada)
    stripe_server.fail("reset_after", "confirm$", times=2)
    assert pay(reservation).json()["Status"] == "Processing"
    stripe_server.faults.clear()
    if is_lost:
        StripePayment.objects.all().delete()

    clock.move_to(LATER)
    call_command("reconcile_payments", stdout=io.StringIO())

    reservation.refresh_from_db()
    assert (reservation.status, state()) == (Status.CONFIRMED, "captured")
    assert stripe_server.count_captures() == 1
    assert_consistent(stripe_server)


KINDS = ["timeout_before", "timeout_after", "error", "reset_after"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", CALLS)
def test_fault_of_any_call_is_resolved(pay, ada, stripe_server, clock, settings, ending, kind):
    settings.GATEWAY_TIMEOUT = 0.5
    reservation = make_draft(ada)
    seconds = 0.7 if kind.startswith("timeout") else 0
    stripe_server.fail(kind, f"{ending}$", times=2, seconds=seconds)

    answer = pay(reservation)
    assert answer.status_code == 200
    assert answer.json()["Status"] == ("Confirmed" if ending == "/capture" else "Processing")
    stripe_server.faults.clear()
    settings.GATEWAY_TIMEOUT = 10

    clock.move_to(LATER)
    reconcile()
    assert_resolved(reservation, pay, stripe_server)


@pytest.mark.parametrize("kind", KINDS)
def test_cancellation_with_unanswered_refund_refunds_once(
    pay, ada, client, token, stripe_server, clock, settings, kind
):
    reservation = make_draft(ada)
    pay(reservation)
    settings.GATEWAY_TIMEOUT = 0.5
    seconds = 0.7 if kind.startswith("timeout") else 0
    stripe_server.fail(kind, "POST /v1/refunds", times=2, seconds=seconds)

    body = {"Token": token, "ReservationId": reservation.pk}
    assert post(client, "/api/reservations/cancel", body).json()["Refund"] == 75.0
    stripe_server.faults.clear()
    settings.GATEWAY_TIMEOUT = 10
    # A day later, all idempotency keys have expired at Stripe.
    stripe_server.test.idempotent_requests.clear()
    clock.move_to(NOW + timedelta(days=1, minutes=1))
    reconcile()
    reconcile()

    assert (state(), len(stripe_server.refunds)) == ("refunded", 1)
    assert_consistent(stripe_server)
