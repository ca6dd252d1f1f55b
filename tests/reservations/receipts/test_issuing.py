"""What receipts and credit notes are issued for, with which tax, and that they never change."""

from decimal import Decimal

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.db.models import Sum

from accounts.act import Act
from centers.models import Center
from payments import manual_payments, refunds
from payments.gateways.base import GatewayRefund
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import LedgerLine, PaymentPurpose
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import book_draft
from reservations.models import (
    Receipt,
    ReceiptSeries,
    ReceiptType,
)
from reservations.receipts.issuing import get_amount_without_receipt, issue_credit_notes
from reservations.receipts.rendering import render_receipt
from roombook.errors import ReceiptNotAvailable
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    PaymentFactory,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.reservations.receipts.helpers import (
    issue,
    load,
    make_seller,
    make_taxed_booking,
    read_text,
    refund,
)
from tests.reservations.rescheduling_helpers import adjust, change, make_room_at_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("seller", "data_is_consistent")]


@pytest.fixture
def seller(db):
    return make_seller()


@pytest.fixture
def booking(seller):
    return make_taxed_booking()


def get_taxes(receipt):
    return [(label, Decimal(net), Decimal(tax)) for label, net, tax in receipt.content["taxes"]]


def test_receipt_covers_a_payment_once_with_its_lines_tax_and_method(booking):
    assert get_amount_without_receipt(booking) == Decimal("82.50")
    [receipt] = issue(booking)
    assert issue(booking) == [receipt]

    assert (receipt.type, receipt.number, receipt.total) == ("Receipt", "2027-000001", 82.5)
    assert get_amount_without_receipt(booking) == 0
    content = receipt.content
    assert content["seller"] == [
        *("Glenarm Rooms Inc.", "1600 Glenarm Place", "Denver", "EIN 12-3456789")
    ]
    assert content["buyer"] == [booking.user.get_full_name()]
    assert [line[2] for line in content["lines"]] == ["$75.00", "$7.50"]
    assert content["total"] == "$82.50"
    assert get_taxes(receipt) == [("Tax, 10%", 75, Decimal("7.50"))]
    assert content["payments"] == [["Visa ending 4242, Mon, Mar 1, 2027", "$82.50"]]
    assert content["is_test"] is True


def test_each_refund_gets_a_credit_note_and_the_tax_of_all_is_returned(booking):
    issue(booking)
    payment = booking.payments.get()
    refund(payment, "27.51", reason="Coffee was cold")
    assert issue_credit_notes(now=NOW) == (1, [])
    assert issue_credit_notes(now=NOW) == (0, [])
    refund(payment, "54.99")

    receipt, first, second = issue(booking)

    assert [first.number, second.number] == ["CN-2027-000001", "CN-2027-000002"]
    assert first.type == second.type == ReceiptType.CREDIT_NOTE
    assert first.content["credited"] == [receipt.number]
    assert first.content["seller"] == receipt.content["seller"]
    assert first.content["lines"] == [["Coffee was cold", "", "$27.51"]]
    assert get_taxes(first) == [("Tax, 10%", Decimal("25.01"), Decimal("2.50"))]
    assert get_taxes(second) == [("Tax, 10%", Decimal("49.99"), Decimal("5.00"))]
    assert sum(each.signed_total for each in (receipt, first, second)) == 0


@pytest.mark.parametrize(("currency", "tax", "amount"), [("USD", 20, "26.67"), ("JPY", 8, "10")])
def test_rounded_tax_of_documents_is_that_of_the_ledger(seller, settings, currency, tax, amount):
    settings.CURRENCY = currency
    booking = make_taxed_booking(tax)
    refund(booking.payments.get(), amount)
    [receipt] = issue(booking)
    [(_, _, tax)] = get_taxes(receipt)
    assert LedgerLine.objects.aggregate(tax=-Sum("tax_payable")) == {"tax": 100 * tax}


def test_documents_of_a_bill_that_contains_tax_state_and_return_its_tax(seller):
    booking = make_taxed_booking("19", includes_tax=True)
    [receipt] = issue(booking)
    adjust(booking, AdministratorFactory(), -25)
    issue(booking)
    refund(booking.payments.get(), "50")

    _, first, second = issue(booking)

    assert [line[2] for line in receipt.content["lines"]] == ["$75.00", "$11.97"]
    label = "Includes 19% tax"
    assert get_taxes(receipt) == [(label, Decimal("63.03"), Decimal("11.97"))]
    assert get_taxes(first) == [(label, Decimal("21.01"), Decimal("3.99"))]
    assert get_taxes(second) == [(label, Decimal("42.02"), Decimal("7.98"))]
    # The bill says what remains of its tax.
    adjustment, tax = booking.line_items.order_by("position")[1:]
    assert (adjustment.contained_tax, tax.total, tax.amount) == (Decimal("-3.99"), 0, "$7.98")


def test_refund_before_the_receipt_reduces_it_and_gets_no_credit_note(booking):
    refund(booking.payments.get(), "41.25")

    [receipt] = issue(booking)

    assert receipt.total == Decimal("41.25")
    assert receipt.content["lines"][-1] == ["Refunded, or not paid yet", "", "-$41.25"]
    assert receipt.content["payments"][-1] == [
        "Refund, Visa ending 4242, Mon, Mar 1, 2027",
        "-$41.25",
    ]
    assert get_taxes(receipt) == [("Tax, 10%", Decimal("37.50"), Decimal("3.75"))]
    assert issue_credit_notes(now=NOW) == (0, [])


def test_refund_that_the_bank_returns_is_covered_by_another_receipt_and_not_credited_twice(booking):
    issue(booking)
    made = refund(booking.payments.get(), "20")
    issue(booking)
    returned = GatewayRefund("re_1", made.amount, key=made.key, failed=True)
    refunds.record_refunds(booking.payments.get(), [returned], now=NOW)

    *_, again = issue(booking)
    retry = refund(booking.payments.get(), "20")
    documents = issue(booking)

    assert (again.type, again.total) == (ReceiptType.RECEIPT, 20)
    assert [each.signed_total for each in documents] == [Decimal("82.50"), -20, 20, -20]
    assert documents[-1].content["refunds"] == [retry.pk]


@pytest.mark.time_machine(NOW, tick=False)
def test_payment_of_a_change_gets_a_receipt_of_the_difference_at_its_own_tax(booking):
    issue(booking)
    booking.room.center.tax_rate = 20
    booking.room.center.save()
    change(booking, hours=4, total=108)

    receipt = issue(booking)[-1]

    assert receipt.total == Decimal("25.50")
    assert receipt.content["lines"][-1] == ["Receipt 2027-000001", "", "-$82.50"]
    assert get_taxes(receipt) == [
        ("Tax, 20%", 90, 18),
        ("Tax, 10%", -75, Decimal("-7.50")),
    ]
    refund(booking.payments.order_by("pk")[0], "82.50")
    note = issue(booking)[-1]
    assert (note.total, get_taxes(note)) == (
        Decimal("82.50"),
        [("Tax, 20%", Decimal("68.75"), Decimal("13.75"))],
    )


def test_nothing_paid_has_no_receipt_and_a_late_cancellation_has_one_for_its_fee(booking):
    pending = load(make_pending_booking())
    for each in (make_draft(start=START + 24 * HOUR), pending):
        with pytest.raises(ReceiptNotAvailable, match="Nothing was paid"):
            issue(each)
    cancel(Act(None, START - MINUTE), booking.pk)

    [receipt] = issue(booking, now=START)

    assert receipt.total == Decimal("82.50")


def test_payment_on_account_gets_a_receipt_once_its_money_has_come_in():
    draft, act = (
        make_draft(UserFactory(credit_limit=100)),
        Act(AdministratorFactory(), NOW, is_staff=True),
    )
    order = {"gateway": "account", "reference": "Order 17", "shown_total": draft.total_cost}
    book_draft(act, draft.pk, **order)
    with pytest.raises(ReceiptNotAvailable):
        issue(draft)
    manual_payments.mark_received(draft.payments.get(), now=NOW)

    [receipt] = issue(draft)

    assert receipt.content["payments"] == [["On account, Order 17, Mon, Mar 1, 2027", "$75.00"]]


def test_receipt_without_a_seller_is_refused_and_a_center_uses_its_own(booking, seller):
    make_seller(center=booking.room.center, legal_name="Glenarm Annex Ltd.")
    seller.delete()
    other = make_taxed_booking()
    with pytest.raises(ReceiptNotAvailable, match="seller"):
        issue(other)

    assert issue(booking)[0].content["seller"][0] == "Glenarm Annex Ltd."


@pytest.mark.time_machine(NOW, tick=False)
def test_each_seller_credits_only_its_own_receipts(booking):
    room = make_room_at_rate(make_room(), 50)
    room.center.tax_rate = 20
    room.center.save()
    make_seller(center=room.center, legal_name="Annex Ltd.")
    issue(booking)
    change(booking, room=room, total=180)
    issue(booking)
    cancel(Act(None, NOW), booking.pk)

    assert issue_credit_notes(now=NOW) == (2, [])

    documents = {(each.content["seller"][0], each.type): each for each in booking.receipts.all()}
    for seller, total, tax in (
        ("Glenarm Rooms Inc.", Decimal("82.50"), ("Tax, 10%", 75, Decimal("7.50"))),
        ("Annex Ltd.", Decimal("97.50"), ("Tax, 20%", Decimal("81.25"), Decimal("16.25"))),
    ):
        receipt, note = documents[seller, "Receipt"], documents[seller, "CreditNote"]
        assert (receipt.total, note.total) == (total, total)
        assert get_taxes(receipt) == get_taxes(note) == [tax]
        assert note.content["credited"] == [receipt.number]


@pytest.mark.inconsistent_data  # No time zone has that name.
def test_reconcile_payments_goes_on_after_a_credit_note_that_fails(booking, capsys):
    other = make_taxed_booking()
    for each in (booking, other):
        issue(each)
        refund(each.payments.get(), "10")
    Center.objects.filter(pk=booking.room.center_id).update(time_zone_id="Nowhere/Unknown")

    with time_machine.travel(NOW), pytest.raises(CommandError) as error:
        call_command("reconcile_payments")

    assert "1 credit note issued." in capsys.readouterr().out
    assert f"Reservation {booking.pk}: its credit notes could not be issued" in str(error.value)
    assert (booking.receipts.count(), other.receipts.count()) == (1, 2)


@pytest.mark.inconsistent_data  # Its refund is due, and the domain would have created it.
def test_payment_of_an_abandoned_change_gets_no_receipt(booking):
    payment = PaymentFactory(
        reservation=booking,
        reservation_uid=booking.uid,
        purpose=PaymentPurpose.CHANGE,
        counts=False,
        amount=20,
    )
    post(booking.pk, EventKind.PAID, cause=f"payment {payment.pk}", now=NOW)

    [receipt] = issue(booking)

    assert receipt.total == Decimal("82.50")


@pytest.mark.inconsistent_data  # It is emptied too early.
def test_receipt_refuses_every_change_but_can_be_emptied(booking):
    [receipt] = issue(booking)
    rows = Receipt.objects.filter(pk=receipt.pk)
    others = {
        "id": receipt.pk + 1,
        "type": ReceiptType.CREDIT_NOTE,
        "series": ReceiptSeries.objects.create(name="other"),
        "number_in_series": 7,
        "number": "X",
        "reservation": make_taxed_booking(start=START + 24 * HOUR),
        "issued_at": NOW - HOUR,
        "issued_by": booking.user,
        "currency": "EUR",
        "total": 1,
        "content": {"total": "$1.00"},
    }
    assert {*others} == {field.name for field in Receipt._meta.concrete_fields}
    for name, value in others.items():
        with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
            rows.update(**{name: value})

    rows.update(content={})
    receipt.refresh_from_db()
    assert (receipt.total, receipt.content) == (Decimal("82.50"), {})


# --- The PDF of a receipt, read with another library ----------------------------------------------


def rename(booking, **names):
    for name, value in names.items():
        setattr(booking.user, name, value)
    booking.user.save()


def test_document_shows_seller_buyer_lines_tax_and_payment(booking):
    rename(booking, first_name="Ada", last_name="Lovelace", company_name="Engines Ltd")
    issue(booking)
    refund(booking.payments.get(), "33.00", reason="Projector broken")
    receipt, note = issue(booking)

    text = read_text(receipt)
    for part in (
        *("Glenarm Rooms Inc.", "1600 Glenarm Place", "EIN 12-3456789", "Receipt 2027-000001"),
        *("Issued on Mon, Mar 1, 2027", f"Reservation {booking.pk}: Boardroom at Glenarm"),
        *("Ada Lovelace", "Engines Ltd", "Tax, 10%", "$7.50", "$75.00", "$82.50"),
        *("Visa ending 4242, Mon, Mar 1, 2027", "Test: no money was moved."),
    ):
        assert part in text
    text = read_text(note)
    for part in (
        "Credit note CN-2027-000001",
        "2027-000001",
        "Projector broken",
        "$33.00",
        "$3.00",
    ):
        assert part in text


def test_buyer_has_the_billing_address_of_the_time_of_issue(booking):
    rename(booking, first_name="Ada", last_name="Lovelace", company_name="")
    address = {"street1": "1 Main Street", "street2": "Floor 2", "state": ""}
    card = SavedCardFactory(user=booking.user, company_name="Engines Ltd", **address)
    [receipt] = issue(booking)
    buyer = ["Engines Ltd", "Ada Lovelace", "1 Main Street", "Floor 2", "Denver, 80202", "US"]
    assert receipt.content["buyer"] == buyer

    card.delete()
    refund(booking.payments.get(), "33.00")
    receipt, note = issue(booking)
    assert receipt.content["buyer"] == note.content["buyer"] == buyer


def test_same_row_gives_the_same_bytes(booking):
    [receipt] = issue(booking)
    first = render_receipt(receipt)

    rename(booking, first_name="Somebody", last_name="Else")

    assert render_receipt(Receipt.objects.get()) == first


def test_names_in_any_script_are_shown_or_visibly_replaced(booking):
    names = {"first_name": "Đặng Ελένη Юлия თამარ 王小明 カナ 김민수", "last_name": "ਸਿੰਘ Singh"}
    rename(booking, **names, company_name="שלום \u202e(x) \\) /AA ไทย हिन्दी")

    text = read_text(issue(booking)[0])

    assert f"{names['first_name']} ▯▯▯▯ Singh" in text
    assert "שלום" in text
    assert "this document cannot show: U+0A38, U+0A3F, U+0A70, U+0A18" in text
