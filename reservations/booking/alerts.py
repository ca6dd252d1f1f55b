"""What needs a person: money and mails that no further try of ours mends.

`reconcile_payments` tells these, and so does the front page of the back office. Each is given the
payments that it is to look at, and says of each that it finds what is wrong with it.
"""

import datetime as dt
from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, QuerySet

from accounts.models import OutboxMessage, OutboxState
from payments import lifecycle
from payments.models import OPEN_PAYMENT_STATES, Dispute, Payment, PaymentState, Refund, RefundState
from reservations.booking.checkout import CAPTURE_DUE_STATUSES, NOT_BOOKED_STATUSES
from reservations.booking.integrity.money import (
    refunded_amount,
    unmet_reductions,
    unmet_refund_promises,
)
from reservations.models.status import Status
from roombook import dates

PaymentAlerts = Iterator[tuple[Payment, str]]

# A silent gateway mostly answers a few minutes later; after that it is a person's business.
GATEWAY_PATIENCE = dt.timedelta(minutes=15)
# Payments that are read at once; the front page stops after the first few.
BATCH_SIZE = 100


def find_lost_authorizations(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Bookings whose money was let go before it was captured."""
    # Mostly what was let go is of no booking: only of the few others it is asked who else paid.
    likely = payments.filter(
        state=PaymentState.VOIDED,
        reservation__status__in=CAPTURE_DUE_STATUSES,
        reservation__total_cost__gt=0,
    )
    paid_otherwise = Payment.objects.filter(
        reservation=OuterRef("reservation"), state__in=[*OPEN_PAYMENT_STATES, PaymentState.REFUNDED]
    )
    found = list(likely.order_by().values_list("pk", flat=True))
    rows = Payment.objects.filter(~Exists(paid_otherwise), pk__in=found)
    for payment in _each(rows):
        yield (
            payment,
            f"let go before it was captured, and the reservation is {payment.reservation.status}.",
        )


def get_orphaned(payments: QuerySet[Payment]) -> QuerySet[Payment]:
    """Money that was taken for what is no booking, and that nobody is paying back."""
    taken = payments.filter(
        state=PaymentState.CAPTURED, reservation__status__in=sorted(NOT_BOOKED_STATUSES)
    )
    return taken.annotate(given=refunded_amount()).filter(given__lt=F("amount"))


def find_captured_without_booking(payments: QuerySet[Payment]) -> PaymentAlerts:
    """What was taken of a cancelled one may rightly be kept: its fee."""
    for payment in _each(get_orphaned(payments).exclude(refunds__state=RefundState.STARTED)):
        yield payment, f"the money was taken, and the reservation is {payment.reservation.status}."


def find_unmet_refund_promises(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Cancelled reservations of which less came back than their customers were told."""
    # Where all came back, the payment is refunded: only of the few others the sums are made.
    likely = payments.filter(
        state=PaymentState.CAPTURED,
        reservation__status=Status.CANCELLED,
        reservation__refund_promised__gt=0,
    )
    paid = list(likely.order_by().values_list("reservation", flat=True))
    unmet = unmet_refund_promises().filter(pk__in=paid).values_list("pk", flat=True)
    for payment in _each(likely.filter(reservation__in=list(unmet))):
        yield (
            payment,
            f"{payment.reservation.refund_promised} was promised back,"
            " and the gateway refused to pay it.",
        )


def find_unmet_reductions(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Bookings that became cheaper, and of which less came back than that."""
    rows = payments.filter(captured_at__isnull=False, reservation__in=unmet_reductions())
    for payment in _each(rows):
        owed = payment.reservation.reduced_by
        yield payment, f"it became cheaper by {owed}, and the gateway refused to pay it."


def find_expiring_authorizations(payments: QuerySet[Payment], *, now: dt.datetime) -> PaymentAlerts:
    """Money of requests that nobody has answered, about to be given back by the bank."""
    waiting = (payments & lifecycle.get_expiring_authorizations(now)).filter(
        reservation__status=Status.PENDING
    )
    for payment in _each(waiting):
        until = dates.format_datetime(payment.authorized_until or now, dt.UTC)
        yield payment, f"reserved until {until} UTC only, and the request is not answered."


def find_unresolved_payments(payments: QuerySet[Payment], *, now: dt.datetime) -> PaymentAlerts:
    """Payments that the gateway has not answered for too long."""
    for payment in _each(payments & Payment.objects.stale(now - GATEWAY_PATIENCE)):
        yield payment, "in doubt: the gateway does not answer."


def find_refused_refunds(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Refunds that the gateway refused and that nobody has seen to."""
    open_ones = Refund.objects.filter(
        state=RefundState.REFUSED, retry__isnull=True, payment__state=PaymentState.CAPTURED
    )
    for payment in _each(payments.filter(refunds__in=open_ones).distinct()):
        yield payment, "the gateway refused to pay a refund."


def _each(payments: QuerySet[Payment]) -> Iterator[Payment]:
    """The payments with their reservations, some at a time.

    Mostly there is none: so it is asked for their ids alone, which takes no more than indexes.
    """
    found = list(payments.order_by("pk").values_list("pk", flat=True))
    for first in range(0, len(found), BATCH_SIZE):
        some = Payment.objects.filter(pk__in=found[first : first + BATCH_SIZE])
        yield from some.select_related("reservation").order_by("pk")


def get_open_disputes(payments: QuerySet[Payment]) -> QuerySet[Dispute]:
    """Customers who ask their bank for the money; those to be answered soonest first."""
    return (
        Dispute.objects.filter(closed_at__isnull=True, payment__in=payments)
        .select_related("payment__reservation")
        .order_by(F("respond_by").asc(nulls_last=True), "pk")
    )


def get_unsent_emails(*, now: dt.datetime, since: dt.datetime) -> QuerySet[OutboxMessage]:
    """Mails that were given up since then, and those that wait for longer than they should."""
    given_up = OutboxMessage.objects.filter(state=OutboxState.FAILED, created_at__gte=since)
    waiting = OutboxMessage.objects.waiting().filter(created_at__lte=now - 4 * GATEWAY_PATIENCE)
    return (given_up | waiting).order_by("-pk")
