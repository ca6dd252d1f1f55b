"""Checks that payments agree with the bookings, and that due refunds are paid."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    ROUNDING_TOLERANCE,
    approximately,
    sum_of_related,
)
from reservations.models import LineItem, Reservation
from reservations.models.status import BOOKED_STATUSES, Status

CLOSED = frozenset({PaymentState.DECLINED, PaymentState.VOIDED, PaymentState.REFUNDED})
STARTED = frozenset({PaymentState.STARTED})
AUTHORIZED = frozenset({PaymentState.AUTHORIZED})
CAPTURED = frozenset({PaymentState.CAPTURED})
NOTHING: frozenset[PaymentState] = frozenset()

# By status of a reservation: the states in which its payments can stay, and those that are only
# temporary, until a capture, void or refund is executed.
ALLOWED: dict[Status, tuple[frozenset[PaymentState], frozenset[PaymentState]]] = {
    Status.NEW: (CLOSED, AUTHORIZED | CAPTURED),
    Status.PROCESSING: (CLOSED | STARTED, NOTHING),
    Status.PENDING: (CLOSED | AUTHORIZED, NOTHING),
    Status.CONFIRMED: (CLOSED | CAPTURED, AUTHORIZED),
    Status.COMPLETED: (CLOSED | CAPTURED, AUTHORIZED),
    Status.NO_SHOW: (CLOSED | CAPTURED, AUTHORIZED),
    # A cancellation fee is kept. See `unmet_refund_promises`.
    Status.CANCELLED: (CLOSED | CAPTURED, AUTHORIZED),
    Status.DECLINED: (CLOSED, AUTHORIZED | CAPTURED),
    Status.EXPIRED: (CLOSED, AUTHORIZED | CAPTURED),
}


# --- Shared with alerts.py ------------------------------------------------------------------------


def effective_refunds() -> QuerySet[Refund]:
    """Refunds that were paid in any way, or are about to be."""
    return Refund.objects.exclude(state=RefundState.REFUSED)


def refunded_amount() -> Coalesce:
    """How much of a payment was refunded or is about to be."""
    return sum_of_related(effective_refunds(), "amount", by="payment")


def unmet_refund_promises() -> QuerySet[Reservation]:
    """Cancelled reservations whose customers were promised more than is refunded.

    What was refunded before the cancellation is not part of the promise. But if everything has been
    refunded, no more can be.
    """
    since = effective_refunds().filter(created_at__gte=F("payment__reservation__cancelled_at"))
    mine = "payment__reservation"
    rows = Reservation.objects.filter(status=Status.CANCELLED, refund_promised__gt=0).annotate(
        given_since=sum_of_related(since, "amount", by=mine),
        given=sum_of_related(effective_refunds(), "amount", by=mine),
        taken=sum_of_related(Payment.objects.filter(captured_at__isnull=False), "amount"),
    )
    all_is_back = Q(taken__gt=0, given__gte=F("taken") - ROUNDING_TOLERANCE)
    return rows.filter(given_since__lt=F("refund_promised") - ROUNDING_TOLERANCE).exclude(
        all_is_back
    )


def unmet_reductions() -> QuerySet[Any]:
    """Paid bookings that became cheaper and are refunded less: the gateway refused."""
    given = sum_of_related(effective_refunds(), "amount", by="payment__reservation")
    rows = Reservation.objects.filter(reduced_by__gt=0).annotate(given=given)
    return rows.filter(given__lt=F("reduced_by") - ROUNDING_TOLERANCE)


# --- Checks --------------------------------------------------------------------------------------


def totals_that_are_not_their_lines(now: dt.datetime) -> Iterator[str]:
    """A total that is not the sum of its line items."""
    rows = Reservation.objects.annotate(lines=sum_of_related(LineItem.objects, "total"))
    rows = rows.exclude(lines__range=approximately("total_cost"))
    for pk, total, lines in rows.values_list("pk", "total_cost", "lines"):
        yield f"reservation {pk}: its total is {total}, its lines add up to {lines}"


def payments_off_their_reservation(now: dt.datetime) -> Iterator[str]:
    """A payment in a state that contradicts the status of its reservation."""
    wrong = Q()
    for status, (stays, passes) in ALLOWED.items():
        allowed = Q(state__in=sorted(stays)) | Q(_is_recent(now), state__in=sorted(passes))
        wrong |= Q(reservation__status=status) & ~allowed
    # A full refund that is due has a check of its own.
    is_going_back = Q(state=PaymentState.CAPTURED, given__gte=F("amount") - ROUNDING_TOLERANCE)
    rows = Payment.objects.filter(wrong).annotate(given=refunded_amount()).exclude(is_going_back)
    columns = ("pk", "state", "reservation", "reservation__status")
    for pk, state, reservation, status in rows.values_list(*columns):
        yield f"payment {pk} is {state}, and its reservation {reservation} is {status}"


def bookings_without_payment(now: dt.datetime) -> Iterator[str]:
    """A booking with a price, but without a payment of that amount."""
    paid = Payment.objects.filter(
        # A payment refunded as a favor counts as well.
        Q(state__in=[PaymentState.AUTHORIZED, PaymentState.CAPTURED])
        | Q(state=PaymentState.REFUNDED) & ~Q(reservation__status=Status.PENDING),
        reservation=OuterRef("pk"),
        amount__range=(
            OuterRef("charged") - ROUNDING_TOLERANCE,
            OuterRef("charged") + ROUNDING_TOLERANCE,
        ),
    )
    # A booking that became cheaper was charged the old price, and the difference was refunded.
    rows = Reservation.objects.annotate(charged=F("total_cost") + F("reduced_by")).filter(
        status__in=sorted(BOOKED_STATUSES), charged__gt=0
    )
    for pk, status in rows.exclude(Exists(paid)).values_list("pk", "status"):
        yield f"reservation {pk} is {status} without a payment of its total"


def payments_in_another_currency(now: dt.datetime) -> Iterator[str]:
    """A bill in one currency with a payment in another."""
    rows = Payment.objects.exclude(currency=F("reservation__currency"))
    columns = ("pk", "currency", "reservation", "reservation__currency")
    for pk, currency, reservation, its in rows.values_list(*columns):
        yield f"payment {pk} is in {currency}, its reservation {reservation} in {its}"


def payments_forgotten(now: dt.datetime) -> Iterator[str]:
    """A payment that is unresolved for too long: reconcile_payments does not run."""
    rows = Payment.objects.filter(state=PaymentState.STARTED, lease_until__lt=now - OVERDUE_AFTER)
    for pk, reservation in rows.values_list("pk", "reservation"):
        yield f"payment {pk} of reservation {reservation} is unresolved for over an hour"


def refunds_above_their_payment(now: dt.datetime) -> Iterator[str]:
    """Refunds that are more than the payment."""
    rows = (
        Payment.objects.all()
        .annotate(given=refunded_amount())
        .filter(given__gt=F("amount") + ROUNDING_TOLERANCE)
    )
    for pk, amount, given in rows.values_list("pk", "amount", "given"):
        yield f"payment {pk} of {amount} has refunds of {given}"


def refunded_without_refunds(now: dt.datetime) -> Iterator[str]:
    """A payment marked as refunded whose refunds do not add up to it."""
    rows = Payment.objects.filter(state=PaymentState.REFUNDED).annotate(given=refunded_amount())
    rows = rows.filter(given__lt=F("amount") - ROUNDING_TOLERANCE)
    for pk, amount, given in rows.values_list("pk", "amount", "given"):
        yield f"payment {pk} of {amount} is refunded, its refunds add up to {given}"


def refunds_forgotten(now: dt.datetime) -> Iterator[str]:
    """A refund that is due for too long: reconcile_payments does not run."""
    rows = Refund.objects.filter(state=RefundState.STARTED, created_at__lt=now - OVERDUE_AFTER)
    for pk, payment in rows.values_list("pk", "payment"):
        yield f"refund {pk} of payment {payment} is due for over an hour"


def refunds_off_their_promise(now: dt.datetime) -> Iterator[str]:
    """A promised refund that was refused or never recorded."""
    for pk, promised in unmet_refund_promises().values_list("pk", "refund_promised"):
        yield f"reservation {pk} is Cancelled: {promised} was promised, and less is refunded"


def reductions_off_their_refunds(now: dt.datetime) -> Iterator[str]:
    """A booking that became cheaper, and whose refund was refused."""
    rows = unmet_reductions().values_list("pk", "reduced_by", "given")
    for pk, reduced_by, given in rows:
        yield f"reservation {pk} became cheaper by {reduced_by}, and {given} is refunded"


def _is_recent(now: dt.datetime) -> Q:
    """Payments whose last known event was not long ago."""
    since = now - OVERDUE_AFTER
    return (
        Q(authorized_at__gt=since)
        | Q(captured_at__gt=since)
        | Q(reservation__cancelled_at__gt=since)
    )


CHECKS = (
    totals_that_are_not_their_lines,
    payments_off_their_reservation,
    bookings_without_payment,
    payments_in_another_currency,
    payments_forgotten,
    refunds_above_their_payment,
    refunded_without_refunds,
    refunds_forgotten,
    refunds_off_their_promise,
    reductions_off_their_refunds,
)
