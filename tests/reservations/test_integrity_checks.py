"""Each check of docs/integrity.md finds data that SQL made inconsistent, and names the rows."""

import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.act import Act
from payments import refunds
from payments.gateways.base import GatewayRefund
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import LedgerLine, Payment, PaymentState, Refund
from reservations.booking import cancellation, checkout, integrity, price_adjustments
from reservations.models import AllowanceEntry, BookingChange, PromoRedemption, Reservation
from reservations.models.constraints import NO_OVERLAP, NO_OVERLAP_BEFORE, TRIGGERS
from reservations.models.status import Status
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PaymentFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    pay,
    update_promo_code,
)

pytestmark = pytest.mark.django_db

LATER = NOW + 2 * HOUR
DOCS = Path(__file__).parents[2] / "docs/integrity.md"

RESERVATION = "UPDATE reservations_reservation SET"
PAYMENT = "UPDATE payments_payment SET"

# By check: the SQL that makes the data inconsistent, and the detail of the finding.
CASES = {
    "overlapping holders": (
        f"{RESERVATION} room_id = {{plain.room_id}} WHERE id = {{other.pk}}",
        "reservations {plain.pk} and {other.pk} both hold room {plain.room_id}",
    ),
    "slots held for no change": (
        f"{RESERVATION} holds_for_id = {{plain.pk}} WHERE id = {{draft.pk}}",
        "room {draft.room_id} is held for a change of reservation {plain.pk} that does not wait",
    ),
    "processing without payment": (
        f"{RESERVATION} status = 'Processing' WHERE id = {{plain.pk}}",
        "reservation {plain.pk} is Processing without a payment under way",
    ),
    "drafts held too long": (
        f"{RESERVATION} hold_until = '2027-03-20 12:00:00+00:00' WHERE id = {{draft.pk}}",
        "reservation {draft.pk} is New and held until 2027-03-20 12:00 UTC",
    ),
    "statuses off their times": (
        f"{RESERVATION} status = 'NoShow', holds_slot = false WHERE id = {{plain.pk}}",
        "reservation {plain.pk} is NoShow, from {plain.start:%Y-%m-%d %H:%M} to"
        " {plain.end:%Y-%m-%d %H:%M} UTC, booked at {plain.booked_at}",
    ),
    "totals that are not their lines": (
        "UPDATE reservations_lineitem SET total = total + 1 WHERE reservation_id = {plain.pk}",
        "reservation {plain.pk}: its total is 75.00, its lines add up to 76.00",
    ),
    "payments off their reservation": (
        f"{RESERVATION} status = 'Declined', holds_slot = false WHERE id = {{plain.pk}}",
        "payment {payment} is captured, and its reservation {plain.pk} is Declined",
    ),
    "bookings without payment": (
        f"{PAYMENT} amount = amount - 1 WHERE id = {{payment}}",
        "reservation {plain.pk} is Confirmed, its payments add up to 74.00, its price is 75.00",
    ),
    "changes off their payment": (
        "UPDATE reservations_bookingchange SET state = 'started', resolved_at = NULL",
        "payment {change} is voided, and its change of reservation {plain.pk} is started",
    ),
    "payments of another reservation": (
        f"{PAYMENT} reservation_id = {{cancelled.pk}} WHERE id = {{payment}}",
        "payment {payment} of reservation {cancelled.pk} was made for reservation {plain.pk}",
    ),
    "payments in another currency": (
        f"{PAYMENT} currency = 'EUR' WHERE id = {{payment}}",
        "payment {payment} is in EUR, its reservation {plain.pk} in USD",
    ),
    "bills in another currency": (
        f"{RESERVATION} currency = 'EUR' WHERE id = {{plain.pk}}",
        "reservation {plain.pk} is billed in EUR",
    ),
    "payments at impossible times": (
        f"{PAYMENT} captured_at = '2099-01-01 12:00:00+00:00' WHERE id = {{payment}}",
        "payment {payment} of 2027-03-01 16:00 UTC was captured at 2099-01-01 12:00 UTC",
    ),
    "disputes above their payment": (
        "INSERT INTO payments_dispute (id, reference, amount, currency, reason, status, opened_at,"
        f" payment_id) VALUES (9, 'd', 75.01, 'USD', '', 'lost', '{NOW}', {{payment}})",
        "dispute 9 of 75.01 is about payment {payment} of 75.00",
    ),
    "manual payments of nobody": (
        f"{PAYMENT} taken_by_id = NULL WHERE id = {{paid_in_cash}}",
        "payment {paid_in_cash} by cash of reservation {in_cash.pk} was taken by nobody",
    ),
    "payments forgotten": (
        f"{PAYMENT} state = 'started', counts = false, lease_until = '{NOW}'"
        " WHERE id = {payment}",
        "payment {payment} of reservation {plain.pk} is unresolved for over an hour",
    ),
    "refunds above their payment": (
        "UPDATE payments_refund SET amount = 80 WHERE id = {refund}",
        "payment {refunded} of 75.00 has refunds of 80.00",
    ),
    "refunded without refunds": (
        "UPDATE payments_refund SET amount = 50 WHERE id = {refund}",
        "payment {refunded} of 75.00 is refunded, its refunds add up to 50.00",
    ),
    "captured though refunded": (
        f"{PAYMENT} state = 'captured' WHERE id = {{refunded}}",
        "payment {refunded} of 75.00 is captured, and is refunded in full",
    ),
    "refunds forgotten": (
        "UPDATE payments_refund SET state = 'started' WHERE id = {refund}",
        "refund {refund} of payment {refunded} is due for over an hour",
    ),
    "manual refunds forgotten": (
        "UPDATE payments_refund SET created_at = '2027-01-01' WHERE id = {by_hand}",
        "refund {by_hand} of payment {paid_in_cash} has not been returned by staff for over two"
        " weeks",
    ),
    "refunds payable without refunds": (
        "UPDATE payments_refund SET state = 'refused' WHERE id = {by_hand}",
        "reservation {in_cash.pk}: 75.00 is owed to its customer, and 0.00 is being refunded",
    ),
    "ledger off the facts": (
        "UPDATE payments_payment SET fee = 2 WHERE id = {payment}",
        "reservation {plain.pk}: bill and payments differ from the ledger:"
        " Gateway -$2.00, Fees of the gateway $2.00",
    ),
    "corrected lines": (
        "INSERT INTO payments_ledgerline"
        " (at, kind, cause, reservation_id, center_id, currency, is_test, day, bookings)"
        f" SELECT '{NOW}', 'corrected', '', id, {{plain.room.center_id}}, 'USD', true,"
        " '2027-03-01', 0 FROM reservations_reservation WHERE id = {plain.pk}",
        "reservation {plain.pk}: line {next_line} of the ledger corrects what no event has posted",
    ),
    "promo counters off their ledger": (
        "UPDATE reservations_promocode SET uses = 3",
        "promo code TEN: 3 uses of {redemption.amount}, its ledger has 1 of {redemption.amount}",
    ),
    "promo uses off their reservation": (
        f"{RESERVATION} status = 'Cancelled', holds_slot = false WHERE id = {{discounted.pk}}",
        "reservation {discounted.pk} is Cancelled and keeps its promo use",
    ),
    "promotions without use": (
        "DELETE FROM reservations_promoredemption",
        "reservation {discounted.pk} has a promotion and took no use of its code",
    ),
    "promo uses off their bill": (
        "UPDATE reservations_promoredemption SET amount = 1",
        "promo use {redemption.pk} of reservation {discounted.pk} is 1.00,"
        " its bill takes {redemption.amount} off",
    ),
    "promo uses above the limit": (
        "UPDATE reservations_promocode SET max_uses_per_account = 0",
        "promo code TEN: user {discounted.user_id}: 1 of 0",
    ),
    "lines without their source": (
        f"{RESERVATION} promo_code_id = NULL WHERE id = {{discounted.pk}}",
        "reservation {discounted.pk}: nothing of it is behind line 3 of its bill:"
        " Promo code TEN, 10% off",
    ),
    "allowances overdrawn": (
        "UPDATE reservations_allowance SET hours = 1",
        "allowance {entry.allowance_id}, in all: 2 of 1 h",
    ),
    "allowance hours off their reservation": (
        "DELETE FROM reservations_allowanceentry",
        "reservation {discounted.pk} is Confirmed: 0 h in the ledger, 2 h on its bill",
    ),
    "hours of another account": (
        "UPDATE reservations_allowance SET user_id = {plain.user_id}",
        "entry {entry.pk}: allowance {entry.allowance_id} is of another account"
        " than reservation {discounted.pk}",
    ),
    "hours in the wrong period": (
        "UPDATE reservations_allowance SET kind = 'monthly'",
        "entry {entry.pk}: allowance {entry.allowance_id} is monthly, its period is None",
    ),
}


def get_problems(now=LATER):
    return [str(each) for each in integrity.find_problems(now=now)]


@pytest.fixture
def rows(db):
    """Reservations of each kind, all of which are consistent."""
    ada = UserFactory()
    AllowanceFactory(user=ada, hours=2)
    PromoCodeFactory(code="TEN")
    discounted = make_draft(ada, start=START + 72 * HOUR, hours=5)
    update_promo_code(discounted.pk, "TEN", user=ada, now=NOW)
    pay(discounted)
    plain, other, cancelled, draft = make_booking(), make_booking(), make_booking(), make_draft()
    cancellation.cancel(Act(None, NOW), cancelled.pk)
    in_cash = checkout.book_draft(
        Act(AdministratorFactory(), NOW, is_staff=True), make_draft().pk, gateway="cash"
    )
    cancellation.cancel(Act(None, NOW), in_cash.pk)
    by_hand = Refund.objects.get(payment__reservation=in_cash)
    change = _create_abandoned_change(plain)
    assert get_problems() == []
    refunded = Payment.objects.get(reservation=cancelled)
    return SimpleNamespace(
        plain=plain,
        other=other,
        cancelled=cancelled,
        draft=draft,
        discounted=discounted,
        payment=Payment.objects.get(reservation=plain, purpose="booking").pk,
        change=change.payment_id,
        refunded=refunded.pk,
        refund=refunded.refunds.get().pk,
        in_cash=in_cash,
        by_hand=by_hand.pk,
        paid_in_cash=by_hand.payment_id,
        redemption=PromoRedemption.objects.get(),
        entry=AllowanceEntry.objects.get(),
        next_line=LedgerLine.objects.latest("pk").pk + 1,
    )


def _create_abandoned_change(booking):
    payment = PaymentFactory(
        reservation=booking,
        reservation_uid=booking.uid,
        purpose="change",
        state="voided",
        amount=25,
    )
    return BookingChange.objects.create(
        reservation=booking,
        payment=payment,
        state="abandoned",
        room_id=booking.room_id,
        start=booking.start,
        end=booking.end + HOUR,
        old_total=booking.total_cost,
        new_total=booking.total_cost + 25,
        version=booking.version,
        created_at=NOW,
        resolved_at=NOW,
    )


@pytest.fixture
def cursor(rows):
    """A cursor on a database without the constraints that prevent some inconsistencies."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in ("reservation_holds_as_its_status_says", NO_OVERLAP, NO_OVERLAP_BEFORE):
                cursor.execute(f"ALTER TABLE reservations_reservation DROP CONSTRAINT {name}")
        else:
            for name in TRIGGERS:
                cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute("DROP INDEX payment_one_open_for_booking")
        cursor.execute("DROP INDEX payment_one_counts_for_booking")
        yield cursor
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


@pytest.mark.parametrize("name", CASES)
def test_data_made_inconsistent_by_sql_is_found_and_named(rows, cursor, name):
    sql, detail = CASES[name]

    cursor.execute(sql.format(**vars(rows)))

    assert f"{name}: {detail.format(**vars(rows))}" in get_problems()


@pytest.mark.parametrize(
    "statement",
    [
        f"{PAYMENT} reservation_id = {{plain.pk}} WHERE reservation_id = {{other.pk}}",
        f"{PAYMENT} fee = -1 WHERE id = {{payment}}",
    ],
)
def test_second_payment_that_counts_or_a_negative_fee_is_refused(rows, statement):
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(**vars(rows)))


@pytest.mark.parametrize(
    "statement",
    [
        f"{PAYMENT} counts = false WHERE id = {{payment}}",
        f"{PAYMENT} cash_center_id = (SELECT center_id FROM centers_meetingroom WHERE id ="
        " {other.room_id}) WHERE id = {payment}",
        f"{PAYMENT} amount = amount - 1 WHERE id = {{payment}}",
        f"{PAYMENT} is_live = true WHERE id = {{payment}}",
        f"{PAYMENT} gateway = 'cash' WHERE id = {{payment}}",
        "UPDATE payments_refund SET amount = 74 WHERE id = {refund}",
        "UPDATE payments_refund SET state = 'outside' WHERE id = {refund}",
        "DELETE FROM payments_refund WHERE id = {refund}",
        f"{PAYMENT} amount = amount + 1 WHERE id = {{payment}}",
        f"{RESERVATION} total_cost = total_cost - 10 WHERE id = {{plain.pk}}",
        f"{RESERVATION} status = 'Cancelled', holds_slot = false, cancelled_at = '{LATER}'"
        " WHERE id = {plain.pk}",
        f"{RESERVATION} status = 'Declined', holds_slot = false WHERE id = {{plain.pk}}",
        "UPDATE reservations_lineitem SET total = total + 1 WHERE reservation_id = {plain.pk}",
        "UPDATE reservations_lineitem SET type = 'Service' WHERE reservation_id = {plain.pk}",
        "DELETE FROM reservations_lineitem WHERE reservation_id = {plain.pk}",
    ],
)
def test_rows_of_money_changed_by_sql_differ_from_the_ledger(rows, cursor, statement):
    cursor.execute(statement.format(**vars(rows)))

    assert [line for line in get_problems() if line.startswith("ledger off the facts")]


@pytest.mark.parametrize(
    "statement",
    [
        f"{RESERVATION} status = 'Completed', holds_slot = false WHERE id = {{plain.pk}}",
        f"{RESERVATION} booked_at = NULL WHERE id = {{plain.pk}}",
        f"{RESERVATION} cancelled_at = NULL WHERE id = {{cancelled.pk}}",
        f"{RESERVATION} occupied_from = start WHERE id = {{plain.pk}}",
        f"{RESERVATION} status = 'Pending', booked_at = '2027-01-01 12:00:00+00:00'"
        " WHERE id = {plain.pk}",
        f"{PAYMENT} captured_at = '2026-03-01 12:00:00+00:00' WHERE id = {{payment}}",
        "DELETE FROM reservations_allowanceuse WHERE reservation_id = {discounted.pk}",
        f"{RESERVATION} status = 'Cancelled', holds_slot = false, cancelled_at = '{LATER}'"
        " WHERE id = {plain.pk}",
        f"{RESERVATION} room_id = {{other.room_id}}, holds_slot = false WHERE id = {{plain.pk}}",
        "INSERT INTO payments_refund (payment_id, amount, reason, state, created_at, done_at, key,"
        f" reference) VALUES ({{payment}}, 75, '', 'done', '{NOW}', '{NOW}',"
        " 'e2b1a4a6c0d14f0e8a3c5b7d9e1f2a3b', '')",
        "INSERT INTO reservations_lineitem (reservation_id, position, type, description, amount,"
        " rate, total, contained_tax, tax_label) VALUES"
        " ({plain.pk}, 98, 'Adjustment', 'Gift', '', '', -5, 0, ''),"
        " ({plain.pk}, 99, 'Room', 'Room', '', '', 5, 0, '')",
    ],
)
def test_other_corruption_by_sql_is_found(rows, cursor, statement):
    cursor.execute(statement.format(**vars(rows)))

    assert get_problems()


def test_dropped_index_and_trigger_are_found(rows):
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX payment_by_time")
        table = " ON payments_ledgerline" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER ledger_line_never_changes{table}")

    assert get_problems() == [
        "missing guards: the database lacks ledger_line_never_changes",
        "missing guards: the database lacks payment_by_time",
    ]


CHECKS_OF_RECEIPTS = (
    *("receipts above their payment", "credit notes forgotten", "receipts off their entries"),
    "gaps between receipts",
)


def test_docs_list_every_check_and_every_check_has_a_test():
    names = [each.__name__.replace("_", " ") for each in integrity.CHECKS]

    assert re.findall(r"^\| ([a-z ]+) \|", DOCS.read_text(), re.M) == names
    # tests/reservations/receipts has the cases of receipts, whose rows no SQL can change.
    assert [*CASES, *CHECKS_OF_RECEIPTS, "missing guards"] == names


# --- What integrity checks report and what they accept; test_integrity_checks.py has each check ---


def set_status(reservation, status):
    """Change the status directly in the database."""
    holds = status in {Status.PROCESSING, Status.PENDING, Status.CONFIRMED}
    Reservation.objects.filter(pk=reservation.pk).update(
        status=status, holds_slot=holds, hold_until=None
    )


def set_payment_state(state):
    counts = state not in {PaymentState.STARTED, PaymentState.DECLINED}
    Payment.objects.update(state=state, authorized_at=NOW, counts=counts)
    return Payment.objects.get()


def make_cancelled():
    reservation = make_booking()
    cancellation.cancel(Act(None, NOW), reservation.pk)
    return reservation


def test_consistent_data_has_no_problems():
    make_draft(), make_booking(), make_pending_booking(), make_cancelled()

    assert get_problems() == []


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.CONFIRMED, PaymentState.AUTHORIZED),
        (Status.COMPLETED, PaymentState.AUTHORIZED),
        (Status.NO_SHOW, PaymentState.STARTED),
        (Status.PENDING, PaymentState.CAPTURED),
        (Status.PROCESSING, PaymentState.AUTHORIZED),
        (Status.CANCELLED, PaymentState.AUTHORIZED),
        (Status.EXPIRED, PaymentState.AUTHORIZED),
        (Status.DECLINED, PaymentState.CAPTURED),
        (Status.NEW, PaymentState.AUTHORIZED),
        (Status.NEW, PaymentState.STARTED),
    ],
)
def test_payment_state_not_matching_reservation_is_reported(status, state):
    reservation = make_booking()
    set_status(reservation, status)
    payment = set_payment_state(state)

    assert (
        f"payments off their reservation: payment {payment.pk} is {state},"
        f" and its reservation {reservation.pk} is {status}"
    ) in get_problems()


def test_recent_due_capture_is_not_reported():
    make_booking()
    set_payment_state(PaymentState.AUTHORIZED)

    assert get_problems(now=NOW + HOUR / 2) == []


def test_goodwill_refund_is_not_reported():
    make_booking()
    refund_in_dashboard(75)

    assert Payment.objects.get().state == PaymentState.REFUNDED
    assert get_problems() == []


def refund_in_dashboard(amount):
    refunds.record_refunds(Payment.objects.get(), [GatewayRefund("re_1", Decimal(amount))], now=NOW)


@pytest.mark.parametrize("favour", [0, 50])
def test_promised_refund_that_the_gateway_refused_is_reported(favour):
    booking = make_booking()
    if favour:
        refund_in_dashboard(favour)
    SandboxPayment.objects.update(refunded=75)
    cancellation.cancel(Act(None, NOW), booking.pk)

    assert get_problems() == [
        f"refunds payable without refunds: reservation {booking.pk}: {75 - favour}.00 is owed to"
        " its customer, and 0.00 is being refunded"
    ]


@pytest.mark.parametrize("amount", [-75, -25])
def test_booking_with_a_reduced_price_is_not_reported(amount):
    reservation = make_booking()
    price_adjustments.adjust_price(
        Act(UserFactory(), NOW, is_staff=True),
        reservation.pk,
        amount=Decimal(amount),
        reason="Sorry",
    )

    assert Reservation.objects.get().total_cost == 75 + amount
    assert get_problems() == []


def test_partly_refunded_payment_is_not_reported_as_refunded():
    make_booking()
    refund_in_dashboard(74)

    assert get_problems() == []
