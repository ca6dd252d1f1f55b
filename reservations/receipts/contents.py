"""What a receipt or a credit note says, as texts that are stored with it (B28.3).

Only `taxes` are amounts too: the next document of the reservation shows the difference to them.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NotRequired, TypedDict

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models import Payment, Refund, RefundState
from payments.refunds import UNCONFIRMED_STATES
from reservations.models import (
    LineItem,
    Receipt,
    ReceiptType,
    Reservation,
    Seller,
)
from reservations.notifications.confirmation import describe_booking, describe_card
from reservations.notifications.formatting import format_short_day
from reservations.pricing.taxes import TaxedSum, split_amount, sum_by_tax
from roombook import money

NO_TAX = "No tax"

# The label of a tax, the net amount and the tax.
TaxRow = tuple[str, Decimal, Decimal]
# The name, address and numbers of a seller, as a document shows them.
SellerLines = tuple[str, ...]


class ReceiptContent(TypedDict):
    """The texts of a document; `taxes` are rows of TaxRow with plain decimal numbers."""

    seller: list[str]
    buyer: list[str]
    date: str
    booking: str
    credited: list[str]
    lines: list[tuple[str, str, str]]
    total: str
    taxes: list[tuple[str, str, str]]
    payments: list[tuple[str, str]]
    refunds: list[int]
    is_test: bool
    # The name of a picture's file.
    logo: NotRequired[str]


def build_content(
    reservation: Reservation,
    receipt_type: ReceiptType,
    amounts: Sequence[tuple[Payment, Decimal]],
    *,
    earlier: Sequence[Receipt],
    seller: SellerLines,
    logo: str,
    now: dt.datetime,
) -> ReceiptContent:
    """Build what a new document says. `amounts` are those of its entries.

    A credit note takes back the receipts of its seller, and has their buyer and logo. `earlier` are
    the documents of the reservation so far, and `seller` is who issues this one.
    """
    own = [each for each in earlier if get_seller_lines(each) == seller]
    listed = {refund for each in earlier for refund in each.content.get("refunds", ())}
    is_receipt = receipt_type == ReceiptType.RECEIPT
    refunds = [
        refund
        for refund in Refund.objects.filter(payment__in=[payment for payment, _ in amounts])
        .exclude(state__in=[RefundState.REFUSED] if is_receipt else UNCONFIRMED_STATES)
        .select_related("payment")
        .order_by("pk")
        if refund.pk not in listed
    ]
    total = sum((amount for _, amount in amounts), money.ZERO)
    lines = list(reservation.line_items.order_by("position"))
    before = sum((each.signed_total for each in own), money.ZERO)
    sign = 1 if is_receipt else -1
    receipts = [each for each in own if each.type == ReceiptType.RECEIPT]
    return {
        "seller": list(seller),
        "buyer": (
            _describe_buyer(reservation) if is_receipt else receipts[-1].content.get("buyer", [])
        ),
        "date": _format_day(reservation, now),
        "booking": f"Reservation {reservation.pk}: {describe_booking(reservation)}",
        "credited": [] if is_receipt else [each.number for each in receipts],
        "lines": list(
            _describe_lines(reservation, lines, earlier, total)
            if is_receipt
            else _describe_refunds(reservation, refunds, -total)
        ),
        "total": money.format_amount(abs(total), reservation.currency),
        "taxes": [
            (label, str(sign * net), str(sign * tax))
            for label, net, tax in split_tax(lines, before + total, earlier=own)
        ],
        "payments": list(_describe_payments(reservation, amounts, refunds)),
        "refunds": [refund.pk for refund in refunds],
        "is_test": not any(payment.is_live for payment, _ in amounts),
        "logo": logo if is_receipt else receipts[-1].content.get("logo", ""),
    }


def split_tax(
    lines: Iterable[LineItem], paid: Decimal, *, earlier: Iterable[Receipt]
) -> list[TaxRow]:
    """Split what is paid of a bill into net amount and tax, less those of the earlier documents.

    There is a row for each tax. All documents are of one seller: another one cannot take back this
    seller's tax. The tax of a part is in the proportion of the bill. So a bill that is paid and
    refunded in parts has the tax of the bill in the end, and none if all is refunded.
    """
    bill = list(sum_by_tax(lines).values()) or [TaxedSum("")]
    gross, taxes = [each.gross for each in bill], [each.tax for each in bill]
    total = sum(gross)
    share = money.round_amount(sum(taxes) * paid / total) if total else money.ZERO
    rows = [
        (each.label or NO_TAX, part - tax, tax)
        for each, part, tax in zip(
            bill, split_amount(paid, gross), split_amount(share, taxes), strict=True
        )
    ]
    if not total:  # What is paid beyond this price has no tax.
        rows = [(bill[0].label or NO_TAX, paid, money.ZERO)]
    for each in earlier:
        sign = -1 if each.type == ReceiptType.RECEIPT else 1
        rows += [
            (label, sign * Decimal(net), sign * Decimal(tax))
            for label, net, tax in each.content.get("taxes", ())
        ]
    sums: dict[str, tuple[Decimal, Decimal]] = {}
    for label, net, tax in rows:
        before = sums.get(label, (money.ZERO, money.ZERO))
        sums[label] = (before[0] + net, before[1] + tax)
    return [(label, *parts) for label, parts in sums.items() if any(parts)]


def describe_seller(seller: Seller) -> SellerLines:
    lines = [seller.legal_name, *seller.legal_address.splitlines()]
    texts = (*lines, seller.tax_number, seller.registration)
    return tuple(line for line in texts if line.strip())


def get_seller_lines(document: Receipt) -> SellerLines:
    """Return the seller that a document names. Once its texts are deleted, it names none."""
    return tuple(document.content.get("seller", [""]))


def _describe_buyer(reservation: Reservation) -> list[str]:
    """The company and the name of the customer, and the billing address of their saved card."""
    user = reservation.user
    card = user.saved_payment_info
    company = user.company_name or (card.company_name if card else "")
    names = [line for line in (company, user.get_full_name()) if line] or [user.email]
    if card is None:
        return names
    streets = (card.street1, card.street2, card.street3)
    address = (*streets, card.city_state_postal_code, card.country)
    return names + [line for line in address if line]


def _format_day(reservation: Reservation, at: dt.datetime) -> str:
    return format_short_day(at.astimezone(reservation.room.center.zone))


def _describe_lines(
    reservation: Reservation, lines: Sequence[LineItem], earlier: Sequence[Receipt], total: Decimal
) -> Iterable[tuple[str, str, str]]:
    """Yield the bill, and what leads from its total to that of the receipt."""
    rest = total
    for line in lines:
        rest -= line.total
        yield line.description, line.rate, line.amount
    for each in earlier:
        rest += each.signed_total
        yield str(each), "", money.format_amount(-each.signed_total, each.currency)
    if rest:
        text = "Refunded, or not paid yet" if rest < 0 else "Paid beyond this price"
        yield text, "", money.format_amount(rest, reservation.currency)


def _describe_refunds(
    reservation: Reservation, refunds: Sequence[Refund], total: Decimal
) -> Iterable[tuple[str, str, str]]:
    """Yield the refunds of a credit note, and what else leads to its total."""
    rest = total
    for refund in refunds:
        rest -= refund.amount
        yield refund.reason or "Refund", "", refund.formatted_amount
    if rest:
        yield "Earlier refunds", "", money.format_amount(rest, reservation.currency)


def _describe_payments(
    reservation: Reservation, amounts: Sequence[tuple[Payment, Decimal]], refunds: Sequence[Refund]
) -> Iterable[tuple[str, str]]:
    """Yield how and when each payment was made, and each refund, with its amount."""
    for payment, amount in amounts:
        if amount > 0:
            at = payment.received_at or payment.captured_at or payment.created_at
            day = _format_day(reservation, at)
            yield f"{describe_method(payment)}, {day}", payment.formatted_amount
    for refund in refunds:
        day = _format_day(reservation, refund.done_at or refund.created_at)
        method = describe_method(refund.payment)
        yield f"Refund, {method}, {day}", f"-{refund.formatted_amount}"


def describe_method(payment: Payment) -> str:
    """Describe how a payment was made: "Visa ending 4242", "Card terminal, slip 17"."""
    manual = MANUAL_GATEWAYS.get(payment.gateway)
    if manual is not None:
        return ", ".join(filter(None, (manual.label, payment.reference)))
    return describe_card(payment) if payment.card_last4 else "Card"
