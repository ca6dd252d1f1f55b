"""Checks that receipts and credit notes agree with payments and refunds (B28)."""

import datetime as dt

from django.db.models import Case, Count, F, Max, Q, When

from payments.models import Payment
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    CheckList,
    Rows,
    approximately,
    get_kept_since,
)
from reservations.models import Receipt, ReceiptEntry, ReceiptSeries, ReceiptType
from reservations.receipts.issuing import find_payments_without_credit_note
from roombook.db.sums import MONEY_FIELD, sum_of_related
from roombook.money import ROUNDING_TOLERANCE

CHECKS = CheckList()


@CHECKS.add("payment {} of {} has receipts of {:.2f}")
def receipts_above_their_payment(now: dt.datetime) -> Rows:
    """Find payments with receipts, less credit notes, that add up to more than was paid."""
    rows = Payment.objects.filter(pk__in=ReceiptEntry.objects.values("payment")).annotate(
        covered=sum_of_related(ReceiptEntry.objects, "amount", by="payment")
    )
    rows = rows.filter(
        Q(covered__gt=F("amount") + ROUNDING_TOLERANCE) | Q(captured_at__isnull=True, covered__gt=0)
    )
    return rows.values_list("pk", "amount", "covered")


@CHECKS.add("payment {} has receipts of {:.2f}, and a refund of over an hour ago no credit note")
def credit_notes_forgotten(now: dt.datetime) -> Rows:
    """Find refunds without a credit note: reconcile_payments does not run."""
    rows = find_payments_without_credit_note(now=now - OVERDUE_AFTER)
    # The check above reports the others.
    rows = rows.filter(covered__lte=F("amount") + ROUNDING_TOLERANCE)
    return rows.values_list("pk", "covered")


@CHECKS.add("receipt {} has a total of {}, its entries add up to {:.2f}")
def receipts_off_their_entries(now: dt.datetime) -> Rows:
    """Find documents whose total is not the sum of their entries."""
    rows = Receipt.objects.annotate(
        signed=Case(
            When(type=ReceiptType.RECEIPT, then=F("total")),
            default=-F("total"),
            output_field=MONEY_FIELD,
        ),
        entered=sum_of_related(ReceiptEntry.objects, "amount", by="receipt"),
    )
    rows = rows.exclude(entered__range=approximately(F("signed")))
    return rows.values_list("number", "total", "entered")


@CHECKS.add("series {} of receipts: its last number is {}, it has {} documents up to number {}")
def gaps_between_receipts(now: dt.datetime) -> Rows:
    """Find series of receipts in which a number is missing."""
    rows = ReceiptSeries.objects.annotate(
        count=Count("receipts"), highest=Max("receipts__number_in_series")
    )
    rows = rows.exclude(count=F("last_number"), highest=F("last_number"))
    return rows.values_list("name", "last_number", "count", "highest")


@CHECKS.add("receipt {} is of reservation {} in {}, its payment {} of reservation {} in {}")
def receipts_off_their_payment(now: dt.datetime) -> Rows:
    """Find documents of another reservation than their payment, or in another currency."""
    own = {"receipt__reservation": F("payment__reservation")}
    rows = ReceiptEntry.objects.exclude(receipt__currency=F("payment__currency"), **own)
    return rows.values_list(
        *("receipt__number", "receipt__reservation", "receipt__currency"),
        *("payment", "payment__reservation", "payment__currency"),
    )


@CHECKS.add("receipt {} of {:%Y-%m-%d} says nothing any more")
def receipts_emptied_too_early(now: dt.datetime) -> Rows:
    """Find documents whose texts are gone although they have to be kept."""
    rows = Receipt.objects.filter(content={}, issued_at__gt=get_kept_since("BOOKS_YEARS", now))
    return rows.values_list("number", "issued_at")
