"""An older backup is restored: Stripe has payments, captures and refunds that it lacks."""

import io
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Sum

from payments import unknown_payments
from payments.models import COMPLETED_REFUND_STATES, Payment, PaymentState, Refund, UnknownPayment
from reservations.booking import approval, cancellation, integrity
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import NOW, make_booking, make_pending_booking
from tests.faults.database import DatabaseStore

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory, django_db_blocker):
    made = DatabaseStore(tmp_path_factory.mktemp("store"))
    with django_db_blocker.unblock():
        yield made
        made.remove()


def reconcile(*words):
    out = io.StringIO()
    call_command("reconcile_payments", *words, stdout=out)
    return out.getvalue()


def get_problems(*words):
    with pytest.raises(CommandError) as problem:
        reconcile(*words)
    return [line.strip() for line in str(problem.value).splitlines()]


def get_amount_here():
    """The money that our payments hold."""
    held = Payment.objects.filter(state__in=[PaymentState.AUTHORIZED, PaymentState.CAPTURED])
    refunded = Refund.objects.filter(payment__in=held, state__in=COMPLETED_REFUND_STATES)
    return sum(
        (rows.aggregate(sum=Sum("amount"))["sum"] or 0) * sign
        for rows, sign in ((held, 1), (refunded, -1))
    )


def get_amount_at_stripe(stripe_server):
    """The money that the intents at Stripe hold."""
    refunds = sum(refund["amount"] for refund in stripe_server.refunds)
    held = [i for i in stripe_server.intents if i["status"] in {"requires_capture", "succeeded"}]
    return Decimal(sum(intent["amount"] for intent in held) - refunds) / 100


@pytest.fixture
def restored(store, stripe_server, clock):
    """A database of an hour ago, with the ids of its cancelled and its approved reservation."""
    database = store.new()
    with database.open():
        make_booking()
        cancelled, approved = make_booking(), make_pending_booking()
    backup = store.copy(database)
    clock.move_to(NOW + HOUR)
    with database.open():
        make_booking(now=NOW + HOUR)
        make_booking(now=NOW + HOUR)
        make_pending_booking(now=NOW + HOUR)
        cancellation.cancel(cancelled.pk, now=NOW + HOUR)
        approval.approve(approved.pk, now=NOW + HOUR)
        assert get_amount_here() == get_amount_at_stripe(stripe_server) == 5 * 75
    with store.copy(backup).open():
        yield cancelled.pk, approved.pk


def test_restore_without_a_comparison_finds_nothing(restored, stripe_server, monkeypatch):
    """The negative control: our own data is consistent, and money is missing."""
    monkeypatch.setattr(unknown_payments, "compare", lambda *_, **__: Payment.objects.none())

    assert reconcile() == "0 payments processed.\n"

    assert [*integrity.find_problems(now=NOW + HOUR)] == []
    assert (get_amount_here(), get_amount_at_stripe(stripe_server)) == (3 * 75, 5 * 75)


@pytest.mark.parametrize("words", [(), ("--since", NOW.isoformat())], ids=["plain", "since"])
def test_restore_of_an_older_backup_is_reported_and_repaired(restored, stripe_server, words):
    cancelled, approved = restored

    problems = get_problems(*words)
    assert f"of reservation {cancelled}, $75.00: it was refunded" in problems[1]
    if words:
        assert f"of reservation {approved}, $75.00: it was captured" in problems[2]
    assert sum("for no booking here" in line for line in problems) == 3
    assert get_amount_at_stripe(stripe_server) == 5 * 75

    released = get_problems(*words, "--release")
    assert sum("; refunded." in line for line in released) == 2
    assert sum("; voided." in line for line in released) == 1
    approval.approve(approved, now=NOW + HOUR)

    reconcile(*words)
    assert [*integrity.find_problems(now=NOW + HOUR)] == []
    assert get_amount_here() == get_amount_at_stripe(stripe_server) == 2 * 75
    # Staff decide about the booking that is named.
    assert Reservation.objects.get(pk=cancelled).status == Status.CONFIRMED


@pytest.mark.django_db
def test_payment_without_money_that_another_run_has_deleted_holds_no_money():
    unknown = UnknownPayment.objects.create(
        key=uuid4(), gateway="sandbox", reference="pay_1", found_at=NOW
    )
    other_run = UnknownPayment.objects.get()
    unknown_payments.refresh_unknown_payment(other_run, release=False, now=NOW)

    outcome = unknown_payments.refresh_unknown_payment(unknown, release=False, now=NOW)

    assert outcome == "no money held"
