"""After a restore, `reconcile_payments` finds what only the gateway knows."""

import datetime as dt
from decimal import Decimal
from uuid import uuid4

import pytest
import time_machine
from django.core.management import CommandError

from accounts.act import Act
from payments import unknown_payments
from payments.cards import parse_card
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment, SandboxRefund
from payments.models import (
    GatewayCheckpoint,
    Payment,
    PaymentState,
    Refund,
    RefundState,
    UnknownPayment,
)
from reservations.booking import integrity, price_adjustments
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import NOW, make_booking, make_pending_booking
from tests.gateway_faults import FaultKind, add_fault

pytestmark = pytest.mark.django_db

CARD = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "credit_card_number": "4242424242424242",
    "expiration_date": dt.datetime(2031, 1, 1, tzinfo=dt.UTC),
}
LATER = NOW + dt.timedelta(minutes=5)
DAY = dt.timedelta(days=1)
NOTHING = "0 payments processed.\n"


def get_problems(reconcile, *words, at=LATER):
    """Run the command, which must fail; return the lines of its error."""
    with pytest.raises(CommandError) as problem:
        reconcile(*words, at=at)
    return [line.strip() for line in str(problem.value).splitlines()]


def get_states():
    return (Reservation.objects.get().status, Payment.objects.get().state)


def fail(operation, kind=FaultKind.TIMEOUT_BEFORE, times=1):
    add_fault(operation=operation, kind=kind, times=times)


def make_lost_payment(*, is_captured=True, at=NOW):
    """Make a payment that the restored database lacks; return its key."""
    key = uuid4()
    with time_machine.travel(at, tick=False):
        SandboxGateway().authorize(
            key=key,
            amount=Decimal(75),
            currency="USD",
            source=parse_card(CARD, now=at),
            description="Reservation 57",
        )
        if is_captured:
            SandboxGateway().capture(key)
    return key


def refund_at_gateway(payment, amount=75, at=NOW):
    key = uuid4()
    with time_machine.travel(at, tick=False):
        SandboxGateway().capture(payment.key)
        SandboxGateway().refund(key=payment.key, refund_key=key, amount=Decimal(amount))
    return key


# --- Payments that only the gateway has ----------------------------------------------------------


def test_unknown_payment_is_reported_by_each_run_until_it_is_released(reconcile):
    key = make_lost_payment()
    reported = [
        "1 problem needs attention:",
        f"pay_{key.hex} at sandbox, $75.00 (Mon 2027-03-01 16:00 UTC, Reservation 57):"
        " for no booking here.",
    ]

    assert get_problems(reconcile) == reported
    assert get_problems(reconcile, at=LATER + DAY) == reported
    assert SandboxPayment.objects.get().state == "captured"

    released = get_problems(reconcile, "--release", at=LATER + DAY)
    assert released[1:] == [f"pay_{key.hex} at sandbox, $75.00: for no booking here; refunded."]
    assert SandboxPayment.objects.get().refunded == 75
    assert reconcile("--since", "2027-02-01T00:00", at=LATER + DAY) == NOTHING


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (GatewayRefused("No key."), "refused. No key."),
        (KeyError(), "failed. KeyError, see the log."),
    ],
)
def test_unknown_payment_that_fails_is_reported(reconcile, monkeypatch, error, said):
    key = make_lost_payment()
    get_problems(reconcile)
    UnknownPayment.objects.create(key=uuid4(), gateway="sandbox", reference="pi_1", found_at=NOW)

    def fail(self, key):
        raise error

    monkeypatch.setattr(SandboxGateway, "find_payment", fail)

    first, *problems = get_problems(reconcile, "--release")
    assert first == "2 problems need attention:"
    assert sorted(problems) == [
        f"pay_{key.hex} at sandbox, $75.00: for no booking here; {said}",
        f"pi_1 at sandbox, an unknown amount: for no booking here; {said}",
    ]


@pytest.mark.parametrize("state", ["authorized", "voided", "declined"])
def test_unknown_payment_without_money_is_not_reported_and_an_authorization_voided(
    reconcile, state
):
    make_lost_payment(is_captured=False)
    SandboxPayment.objects.update(state=state)

    if state != "authorized":
        assert reconcile() == NOTHING
        return
    assert get_problems(reconcile, "--release")[1].endswith("; voided.")
    assert SandboxPayment.objects.get().state == "voided"
    assert not SandboxRefund.objects.exists()


def test_unknown_payment_refunded_in_part_is_reported_and_released_with_its_rest(reconcile):
    key = make_lost_payment()
    SandboxGateway().refund(key=key, refund_key=uuid4(), amount=Decimal(25))

    assert "$50.00" in get_problems(reconcile)[1]
    get_problems(reconcile, "--release")

    assert sorted(SandboxRefund.objects.values_list("amount", flat=True)) == [25, 50]


def test_release_changes_no_payment_of_a_booking(reconcile):
    make_booking()
    make_pending_booking()
    before = list(SandboxPayment.objects.values("key", "state", "refunded"))
    SandboxPayment.objects.update(created_at=NOW)

    assert reconcile("--since", "2027-02-01T00:00", "--release").endswith(
        "2 payments processed: 1 authorized, 1 captured.\n"
    )

    assert list(SandboxPayment.objects.values("key", "state", "refunded")) == before
    assert not UnknownPayment.objects.exists()


def test_unknown_payment_is_never_released_after_its_row_is_back(reconcile):
    make_booking()
    payment = Payment.objects.get()
    UnknownPayment.objects.create(
        gateway="sandbox", key=payment.key, currency="USD", amount=75, found_at=NOW
    )

    assert "known again" in reconcile("--release")

    assert SandboxPayment.objects.get().refunded == 0
    assert UnknownPayment.objects.get().resolution == "known again"


def test_payment_voided_here_and_captured_at_the_gateway_is_unknown(reconcile):
    make_booking()
    SandboxPayment.objects.update(created_at=NOW)
    Payment.objects.update(state=PaymentState.VOIDED, captured_at=None, closed_at=NOW)
    Reservation.objects.update(status=Status.NEW, holds_slot=False, booked_at=None)

    assert "for no booking" in get_problems(reconcile)[1]
    get_problems(reconcile, "--release")

    assert SandboxPayment.objects.get().refunded == 75


def test_kept_payment_is_neither_reported_nor_released(reconcile):
    make_lost_payment()
    get_problems(reconcile)
    unknown = UnknownPayment.objects.get()
    unknown_payments.keep(UnknownPayment.objects.get(), now=LATER)

    assert reconcile("--since", "2027-02-01T00:00", "--release") == NOTHING
    # Nor by a run that has read it before.
    outcome = unknown_payments.refresh_unknown_payment(unknown, release=True, now=LATER)

    assert outcome == UnknownPayment.objects.get().resolution == "kept"
    payment = SandboxPayment.objects.get()
    assert (payment.state, payment.refunded) == ("captured", 0)


def test_released_payment_whose_refund_is_returned_is_reported_again(reconcile):
    make_lost_payment()
    get_problems(reconcile, "--release")
    SandboxRefund.objects.all().delete()
    SandboxPayment.objects.update(state="captured", refunded=0)

    assert get_problems(reconcile, "--since", NOW.isoformat())[-1].endswith("for no booking here.")


def test_run_whose_payments_are_not_all_processed_is_repeated_by_the_next(reconcile):
    booking = make_booking()
    refund_at_gateway(booking.payments.get(), at=LATER)
    fail("lookup")
    get_problems(reconcile, "--since", NOW.isoformat(), at=LATER + DAY)
    assert not GatewayCheckpoint.objects.exists()

    assert "refunded at the gateway" in get_problems(reconcile, at=LATER + DAY)[-1]
    assert GatewayCheckpoint.objects.get().compared_until == LATER + DAY


def test_run_compares_from_the_end_of_the_last_run(reconcile):
    make_booking()
    reconcile()
    assert GatewayCheckpoint.objects.get().compared_until == LATER
    make_lost_payment(at=LATER - dt.timedelta(minutes=4))
    make_lost_payment(at=LATER - dt.timedelta(hours=1))

    problems = get_problems(reconcile, at=LATER + DAY)
    assert problems[0] == "1 problem needs attention:"
    assert len(get_problems(reconcile, "--since", "2027-03-01T15:00", at=LATER + DAY)) == 3
    # Times without an offset are UTC.
    assert len(get_problems(reconcile, "--since", "2027-03-01T16:00+01:00", at=LATER + DAY)) == 3


def test_checkpoint_of_a_restored_backup_makes_the_next_run_compare_from_it(reconcile):
    """Even if new payments were made before that run."""
    reconcile()
    make_lost_payment(at=LATER + dt.timedelta(hours=1))
    make_booking(now=LATER + DAY)

    assert "for no booking" in get_problems(reconcile, at=LATER + DAY)[1]


def test_since_in_the_future_is_refused(reconcile):
    with pytest.raises(CommandError, match="--since is in the future"):
        reconcile("--since", "2027-03-01T17:00")


def test_gateway_that_does_not_list_its_payments_is_compared_by_the_next_run(reconcile):
    make_booking()
    reconcile()
    make_lost_payment(at=LATER)
    fail("list", times=2)

    assert reconcile(at=LATER + dt.timedelta(minutes=1)) == NOTHING
    problems = get_problems(reconcile, "--since", "2027-03-01T00:00", at=LATER + DAY)
    assert problems == [
        "1 problem needs attention:",
        "The gateway does not answer: its payments were not compared with ours.",
    ]
    assert "for no booking" in get_problems(reconcile, at=LATER + DAY)[1]


def test_unanswered_release_is_repeated_and_refunds_once(reconcile):
    make_lost_payment()
    get_problems(reconcile)
    fail("refund", FaultKind.TIMEOUT_AFTER)

    assert "for no booking" in get_problems(reconcile, "--release")[1]
    assert reconcile("--release").startswith("[no booking 1/1]")

    assert SandboxRefund.objects.get().amount == 75
    assert reconcile() == NOTHING


def test_payment_without_money_that_another_run_has_deleted_holds_no_money():
    unknown = UnknownPayment.objects.create(
        key=uuid4(), gateway="sandbox", reference="pay_1", found_at=NOW
    )
    other_run = UnknownPayment.objects.get()
    unknown_payments.refresh_unknown_payment(other_run, release=False, now=NOW)

    outcome = unknown_payments.refresh_unknown_payment(unknown, release=False, now=NOW)

    assert outcome == "no money held"


# --- Our payments that changed at the gateway ----------------------------------------------------


@pytest.mark.parametrize("amount", [75, 25])
def test_booking_refunded_at_the_gateway_is_named_and_its_refund_recorded(reconcile, amount):
    if amount == 75:  # also one that was never captured here
        fail("capture")
    reservation = make_booking()
    if amount != 75:
        reconcile()
    key = refund_at_gateway(Payment.objects.get(), amount=amount, at=NOW + DAY)

    words = "" if amount == 75 else " in part"
    assert get_problems(reconcile, at=LATER + DAY) == [
        "1 problem needs attention:",
        f"Payment {Payment.objects.get().pk} of reservation {reservation.pk}, $75.00:"
        f" it was refunded{words} at the gateway, and the reservation is Confirmed.",
    ]
    state = PaymentState.REFUNDED if amount == 75 else PaymentState.CAPTURED
    assert get_states() == (Status.CONFIRMED, state)
    refund = Refund.objects.get()
    assert (refund.key, refund.amount, refund.state) == (key, amount, RefundState.DONE)
    assert [*integrity.find_problems(now=LATER + DAY)] == []
    assert reconcile(at=LATER + DAY) == NOTHING


def test_old_booking_refunded_after_the_backup_is_named(reconcile):
    """The payment is older than the time that the run compares; its refund is not."""
    make_booking()
    refund_at_gateway(Payment.objects.get(), at=NOW + DAY)

    words = ("--since", (NOW + DAY).isoformat())
    assert "reservation is Confirmed" in get_problems(reconcile, *words, at=LATER + DAY)[1]

    assert Refund.objects.get().amount == 75


def test_unresolved_payment_refunded_at_the_gateway_has_its_refund_recorded(reconcile):
    fail("authorize", FaultKind.TIMEOUT_AFTER)
    make_booking()
    refund_at_gateway(Payment.objects.get())

    assert reconcile().endswith("1 payment processed: 1 refunded.\n")

    assert get_states() == (Status.NEW, PaymentState.REFUNDED)
    assert Refund.objects.get().amount == 75
    assert [*integrity.find_problems(now=LATER)] == []


def test_request_captured_after_the_backup_is_captured_here(reconcile):
    make_pending_booking()
    SandboxGateway().capture(Payment.objects.get().key)
    SandboxPayment.objects.update(created_at=NOW)

    words = ("--since", (NOW + DAY).isoformat())
    problems = get_problems(reconcile, *words, at=NOW + DAY + DAY / 2)

    assert problems[1].endswith("it was captured at the gateway, and the reservation is Pending.")
    assert Payment.objects.get().state == PaymentState.CAPTURED


def test_refunds_that_we_made_are_not_compared_again(reconcile):
    reservation = make_booking()
    with time_machine.travel(NOW, tick=False):
        price_adjustments.adjust_price(
            Act(AdministratorFactory(), NOW, is_staff=True),
            reservation.pk,
            amount=Decimal(-25),
            reason="Late",
        )
    assert Refund.objects.get().state == RefundState.DONE

    assert reconcile() == NOTHING
