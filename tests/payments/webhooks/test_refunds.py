"""Stripe's webhook events about refunds."""

from datetime import timedelta
from decimal import Decimal

import pytest

from payments import gateways, refunds
from payments.models import Refund
from reservations.booking.cancellation import cancel
from tests.factories_reservations import NOW
from tests.payments.webhooks.helpers import find_problems

pytestmark = pytest.mark.django_db


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
