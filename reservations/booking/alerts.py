"""What needs a person: money and mails that no further try of ours mends.

`reconcile_payments` tells these, and so does the front page of the back office. Each is given the
payments that it is to look at, and says of each that it finds what is wrong with it.
"""

import datetime as dt
from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, QuerySet

from accounts.outbox import OutboxMessage, State
from payments import processing
from payments.models import OPEN_STATES, Dispute, Payment, PaymentState, Refund, RefundState
from reservations.booking.checkout import CAPTURE_OWED, NEVER_BOOKED
from reservations.booking.integrity.money import given_back, promises_unmet, reductions_unmet
from reservations.models.status import Status
from roombook import dates

Found = Iterator[tuple[Payment, str]]

# A silent gateway mostly answers a few minutes later; after that it is a person's business.
PATIENCE = dt.timedelta(minutes=15)
# Payments that are read at once; the front page stops after the first few.
AT_A_TIME = 100


def lost(payments: QuerySet[Payment]) -> Found:
    """Bookings whose money was let go before it was captured."""
    # Mostly what was let go is of no booking: only of the few others it is asked who else paid.
    likely = payments.filter(
        state=PaymentState.VOIDED,
        reservation__status__in=CAPTURE_OWED,
        reservation__total_cost__gt=0,
    )
    paid_otherwise = Payment.objects.filter(
        reservation=OuterRef("reservation"), state__in=[*OPEN_STATES, PaymentState.REFUNDED]
    )
    found = list(likely.order_by().values_list("pk", flat=True))
    rows = Payment.objects.filter(~Exists(paid_otherwise), pk__in=found)
    for payment in _each(rows):
        yield (
            payment,
            f"let go before it was captured, and the reservation is {payment.reservation.status}.",
        )


def ownerless(payments: QuerySet[Payment]) -> QuerySet[Payment]:
    """Money that was taken for what is no booking, and that nobody is paying back."""
    taken = payments.filter(
        state=PaymentState.CAPTURED, reservation__status__in=sorted(NEVER_BOOKED)
    )
    return taken.annotate(given=given_back()).filter(given__lt=F("amount"))


def kept_without_booking(payments: QuerySet[Payment]) -> Found:
    """What was taken of a cancelled one may rightly be kept: its fee."""
    for payment in _each(ownerless(payments).exclude(refunds__state=RefundState.STARTED)):
        yield payment, f"the money was taken, and the reservation is {payment.reservation.status}."


def promised(payments: QuerySet[Payment]) -> Found:
    """Cancelled reservations of which less came back than their customers were told."""
    # Where all came back, the payment is refunded: only of the few others the sums are made.
    likely = payments.filter(
        state=PaymentState.CAPTURED,
        reservation__status=Status.CANCELLED,
        reservation__refund_promised__gt=0,
    )
    paid = list(likely.order_by().values_list("reservation", flat=True))
    unmet = promises_unmet().filter(pk__in=paid).values_list("pk", flat=True)
    for payment in _each(likely.filter(reservation__in=list(unmet))):
        yield (
            payment,
            f"{payment.reservation.refund_promised} was promised back,"
            " and the gateway refused to pay it.",
        )


def reduced(payments: QuerySet[Payment]) -> Found:
    """Bookings that became cheaper, and of which less came back than that."""
    rows = payments.filter(captured_at__isnull=False, reservation__in=reductions_unmet())
    for payment in _each(rows):
        owed = payment.reservation.reduced_by
        yield payment, f"it became cheaper by {owed}, and the gateway refused to pay it."


def lapsing(payments: QuerySet[Payment], *, now: dt.datetime) -> Found:
    """Money of requests that nobody has answered, about to be given back by the bank."""
    waiting = (payments & processing.lapsing(now)).filter(reservation__status=Status.PENDING)
    for payment in _each(waiting):
        until = dates.moment(payment.authorized_until or now, dt.UTC)
        yield payment, f"reserved until {until} UTC only, and the request is not answered."


def in_doubt(payments: QuerySet[Payment], *, now: dt.datetime) -> Found:
    """Payments that the gateway has not answered for too long."""
    for payment in _each(payments & Payment.objects.in_doubt(now - PATIENCE)):
        yield payment, "in doubt: the gateway does not answer."


def refused_refunds(payments: QuerySet[Payment]) -> Found:
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
    for first in range(0, len(found), AT_A_TIME):
        some = Payment.objects.filter(pk__in=found[first : first + AT_A_TIME])
        yield from some.select_related("reservation").order_by("pk")


def open_disputes(payments: QuerySet[Payment]) -> QuerySet[Dispute]:
    """Customers who ask their bank for the money; those to be answered soonest first."""
    return (
        Dispute.objects.filter(closed_at__isnull=True, payment__in=payments)
        .select_related("payment__reservation")
        .order_by(F("respond_by").asc(nulls_last=True), "pk")
    )


def unsent_mails(*, now: dt.datetime, since: dt.datetime) -> QuerySet[OutboxMessage]:
    """Mails that were given up since then, and those that wait for longer than they should."""
    given_up = OutboxMessage.objects.filter(state=State.GIVEN_UP, created_at__gte=since)
    waiting = OutboxMessage.objects.waiting().filter(created_at__lte=now - 4 * PATIENCE)
    return (given_up | waiting).order_by("-pk")
