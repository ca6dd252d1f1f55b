"""Issues receipts and credit notes, and numbers them without gaps (B28).

A receipt is issued on request, for what was paid and has no receipt yet. Once a payment has one, a
refund is followed by a credit note: at the next request, or by `reconcile_payments`.
"""

import datetime as dt
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db.models import F, Q, QuerySet, Sum

from accounts.models import User
from payments.ledger.accounts import MONEY_ACCOUNTS, Account
from payments.ledger.models import add_accounts
from payments.models import COMPLETED_REFUND_STATES, Payment, Refund, RefundState
from reservations.models import (
    Receipt,
    ReceiptEntry,
    ReceiptSeries,
    ReceiptType,
    Reservation,
    Seller,
)
from reservations.models.status import Status
from reservations.receipts.contents import (
    SellerLines,
    build_content,
    describe_seller,
    get_seller_lines,
)
from roombook import money
from roombook.db.sums import sum_of_related
from roombook.db.transactions import in_transaction
from roombook.errors import ReceiptNotAvailable

logger = logging.getLogger(__name__)

# A payment for a reservation that was never booked is refunded: it gets no receipt.
RECEIPT_STATUSES = frozenset({Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW, Status.CANCELLED})
SERIES_PREFIXES = {ReceiptType.RECEIPT: "", ReceiptType.CREDIT_NOTE: "CN-"}

# The accounts of what customers have paid.
PAID = MONEY_ACCOUNTS | {Account.GATEWAY_FEES, Account.DISPUTES_LOST}

Amounts = list[tuple[Payment, Decimal]]


@in_transaction
def issue_documents(reservation: Reservation, *, by: User | None, now: dt.datetime) -> None:
    """Issue the credit notes and the receipt that are due, if any (B28.1, B28.2).

    The reservation's user and its room's center are loaded. `by` is the member of staff.

    Raises ReceiptNotAvailable if there is no document then, or if no seller is known.
    """
    rests = _compare(reservation, _lock_payments(reservation))
    _credit_refunds(reservation, rests, now=now)
    if amounts := _get_amounts_without_receipt(reservation, rests):
        seller = Seller.find(reservation.room.center_id)
        if seller is None:
            raise ReceiptNotAvailable(
                "Receipts cannot be issued yet, because the seller's details are missing. Please"
                " ask the center."
            )
        lines = describe_seller(seller)
        logo = str(seller.logo.name or "")
        _store(reservation, ReceiptType.RECEIPT, amounts, seller=lines, logo=logo, by=by, now=now)
    elif not reservation.receipts.exists():
        raise ReceiptNotAvailable


def get_amount_without_receipt(reservation: Reservation) -> Decimal:
    """Return the total of the receipt that would be issued now; 0 if none would be."""
    rests = _compare(reservation, list(_get_paid(reservation)))
    amounts = _get_amounts_without_receipt(reservation, rests)
    return sum((amount for _, amount in amounts), money.ZERO)


def issue_credit_notes(*, now: dt.datetime) -> tuple[int, list[int]]:
    """Issue all credit notes that are due, one reservation at a time (B28.2).

    Returns how many were issued, and the reservations for which that failed, which is logged.
    """
    rows = find_payments_without_credit_note(now=now).values_list("reservation", flat=True)
    count = 0
    failed = []
    for pk in sorted(set(rows)):
        try:
            count += _issue_due_credit_notes(pk, now=now)
        except Exception:
            logger.exception("The credit notes of reservation %s could not be issued.", pk)
            failed.append(pk)
    return count, failed


def find_payments_without_credit_note(*, now: dt.datetime) -> QuerySet[Any]:
    """Return the payments of which more has a receipt than was kept after the refunds until now."""
    done = Refund.objects.filter(state__in=COMPLETED_REFUND_STATES, done_at__lte=now)
    rows = Payment.objects.filter(pk__in=ReceiptEntry.objects.values("payment")).annotate(
        given=sum_of_related(done, "amount", by="payment"),
        covered=sum_of_related(ReceiptEntry.objects, "amount", by="payment"),
    )
    return rows.filter(
        Q(covered__gt=F("amount") - F("given") + money.ROUNDING_TOLERANCE)
        | Q(captured_at__isnull=True, covered__gt=0)
    )


@in_transaction
def _issue_due_credit_notes(reservation_id: int, *, now: dt.datetime) -> int:
    rows = Reservation.objects.select_related("user", "room__center")
    reservation = rows.get(pk=reservation_id)
    rests = _compare(reservation, _lock_payments(reservation))
    return _credit_refunds(reservation, rests, now=now)


def _lock_payments(reservation: Reservation) -> list[Payment]:
    """Lock what was paid, so that no other request issues a document for it, or refunds it."""
    return list(_get_paid(reservation).select_for_update())


def _get_paid(reservation: Reservation) -> QuerySet[Payment]:
    rows: QuerySet[Payment] = reservation.payments.filter(captured_at__isnull=False)
    return rows.order_by("pk")


def _compare(reservation: Reservation, payments: Sequence[Payment]) -> Amounts:
    """Return what came in by each payment and was not returned, less what has a receipt.

    The former is a sum of lines of the ledger. What the gateway keeps as its fees, and what a
    dispute takes back, was paid nevertheless.
    """
    refunds = Refund.objects.filter(payment__in=payments).values_list("pk", "payment")
    causes = {f"payment {each.pk}": each.pk for each in payments}
    causes |= {f"refund {pk}": payment for pk, payment in refunds}
    lines = reservation.ledger_lines.filter(cause__in=causes).order_by()
    rests = dict.fromkeys(causes.values(), money.ZERO)
    for cause, amount in lines.values_list("cause").annotate(sum=Sum(add_accounts(PAID))):
        rests[causes[cause]] += money.from_hundredths(amount)
    for payment, covered in _sum_by_payment(ReceiptEntry.objects, payments).items():
        rests[payment] -= covered
    return [(each, rests[each.pk]) for each in payments]


def _sum_by_payment(rows: Any, payments: Sequence[Payment]) -> dict[int, Decimal]:
    sums = rows.filter(payment__in=payments).order_by().values_list("payment")
    # SQLite adds in binary floating point.
    return {payment: money.round_amount(amount) for payment, amount in sums.annotate(Sum("amount"))}


def _get_amounts_without_receipt(reservation: Reservation, rests: Amounts) -> Amounts:
    """Return what was paid and has no receipt, less the refunds that are due or done.

    Money on account is in the ledger once it has come in. Attempts before the payment that paid,
    and payments of abandoned changes, get no receipt: they are refunded.
    """
    if reservation.status not in RECEIPT_STATUSES:
        return []
    started = Refund.objects.filter(state=RefundState.STARTED)
    due = _sum_by_payment(started, [payment for payment, _ in rests])
    amounts = [(each, rest - due.get(each.pk, money.ZERO)) for each, rest in rests if each.counts]
    return [(payment, amount) for payment, amount in amounts if amount > 0]


def _credit_refunds(reservation: Reservation, rests: Amounts, *, now: dt.datetime) -> int:
    """Issue the credit notes that are due, one for each seller; return how many."""
    amounts = [(payment, rest) for payment, rest in rests if rest < 0]
    parts = _split_by_seller(reservation, amounts) if amounts else {}
    for seller, part in parts.items():
        _store(reservation, ReceiptType.CREDIT_NOTE, part, seller=seller, by=None, now=now)
    return len(parts)


def _split_by_seller(reservation: Reservation, amounts: Amounts) -> dict[SellerLines, Amounts]:
    """Split what is credited by the seller whose receipts have it, the latest receipt first."""
    covered: dict[int, dict[SellerLines, Decimal]] = {}
    entries = ReceiptEntry.objects.filter(receipt__reservation=reservation)
    for each in entries.select_related("receipt").order_by("-receipt"):
        sums = covered.setdefault(each.payment_id, {})
        seller = get_seller_lines(each.receipt)
        sums[seller] = sums.get(seller, money.ZERO) + each.amount
    parts: dict[SellerLines, Amounts] = {}
    for payment, amount in amounts:
        rest = -amount
        for seller, available in covered.get(payment.pk, {}).items():
            part = min(rest, available)
            if part > 0:
                parts.setdefault(seller, []).append((payment, -part))
                rest -= part
    return parts


def _store(
    reservation: Reservation,
    receipt_type: ReceiptType,
    amounts: Amounts,
    *,
    seller: SellerLines,
    logo: str = "",
    by: User | None,
    now: dt.datetime,
) -> None:
    earlier = list(reservation.receipts.order_by("pk"))
    content = build_content(
        *(reservation, receipt_type, amounts),
        earlier=earlier,
        seller=seller,
        logo=logo,
        now=now,
    )
    year = now.astimezone(reservation.room.center.zone).year
    # Last of all, because other documents wait for it.
    series = _take_number(f"{SERIES_PREFIXES[receipt_type]}{year}")
    receipt = Receipt.objects.create(
        type=receipt_type,
        series=series,
        number_in_series=series.last_number,
        number=f"{series.name}-{series.last_number:06}",
        reservation=reservation,
        issued_at=now,
        issued_by=by,
        currency=reservation.currency,
        total=abs(sum((amount for _, amount in amounts), money.ZERO)),
        content=content,
    )
    ReceiptEntry.objects.bulk_create(
        [ReceiptEntry(receipt=receipt, payment=each, amount=amount) for each, amount in amounts]
    )


def _take_number(name: str) -> ReceiptSeries:
    """Lock the series until the transaction ends, and count its next number."""
    ReceiptSeries.objects.get_or_create(name=name)
    series = ReceiptSeries.objects.select_for_update().get(name=name)
    series.last_number += 1
    series.save(update_fields=["last_number"])
    return series
