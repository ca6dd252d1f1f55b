"""Finds payments and e-mails that need attention because no further automatic attempt can fix them.

The command `reconcile_payments` and the dashboard of the back office report them. Each `find_`
function takes the payments to check, and yields each payment that has a problem with a sentence
that describes the problem.
"""

import datetime as dt
from collections.abc import Iterator

from django.db.models import F, QuerySet

from accounts.models import OutboxMessage
from payments import refunds
from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models import (
    Dispute,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
    RefundState,
)
from reservations.booking.charging import CAPTURE_DUE_STATUSES
from reservations.models.status import Status
from roombook import dates
from roombook.deliveries import DeliveryState

PaymentAlerts = Iterator[tuple[Payment, str]]

# An outage of the gateway usually ends within minutes. Staff are alerted after this time.
GATEWAY_PATIENCE = dt.timedelta(minutes=15)
# Authorizations that expire this soon need attention.
AUTHORIZATION_EXPIRY_NOTICE = dt.timedelta(hours=24)
# The number of payments read at once. The dashboard stops after the first few.
BATCH_SIZE = 100


def find_lost_authorizations(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Find bookings whose authorization was voided before it was captured."""
    rows = payments.filter(
        counts=True, state=PaymentState.VOIDED, reservation__status__in=CAPTURE_DUE_STATUSES
    )
    for payment in _iterate(rows):
        yield (
            payment,
            f"voided before it was captured, and the reservation is {payment.reservation.status}.",
        )


def get_orphaned(payments: QuerySet[Payment]) -> QuerySet[Payment]:
    """Return payments captured for no booking, or no change, that are not being refunded."""
    captured = payments.filter(counts=False, state=PaymentState.CAPTURED)
    return captured.annotate(given=refunds.sum_refunds()).filter(given__lt=F("amount"))


def find_captured_without_booking(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Find payments captured for no booking. A cancelled booking can have a cancellation fee."""
    for payment in _iterate(get_orphaned(payments).exclude(refunds__state=RefundState.STARTED)):
        problem = f"it was captured, and the reservation is {payment.reservation.status}."
        if payment.purpose == PaymentPurpose.CHANGE:
            problem = "it was captured for a change that was not made."
        yield payment, problem


def find_expiring_authorizations(payments: QuerySet[Payment], *, now: dt.datetime) -> PaymentAlerts:
    """Find authorizations of unanswered requests that are about to expire."""
    waiting = payments.filter(
        state=PaymentState.AUTHORIZED,
        authorized_until__lte=now + AUTHORIZATION_EXPIRY_NOTICE,
        reservation__status=Status.PENDING,
    )
    for payment in _iterate(waiting):
        until = dates.format_datetime(payment.authorized_until or now, dt.UTC)
        yield payment, f"authorized only until {until}, and the request is not answered."


def find_unresolved_payments(payments: QuerySet[Payment], *, now: dt.datetime) -> PaymentAlerts:
    """Find payments for which the gateway has not answered for too long."""
    for payment in _iterate(payments & Payment.objects.stale(now - GATEWAY_PATIENCE)):
        yield payment, "payment status unknown: the gateway does not answer."


def find_refused_refunds(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Find refunds that the gateway refused and that nobody has handled."""
    unhandled = payments.filter(refunds__in=refunds.get_unhandled())
    for payment in _iterate(unhandled.distinct()):
        for refund in refunds.get_unhandled().filter(payment=payment).order_by("pk"):
            yield payment, f"the gateway refused a refund of {refund.formatted_amount}."


def find_refunds_by_hand(payments: QuerySet[Payment]) -> PaymentAlerts:
    """Find refunds of payments without a gateway that staff still have to make (B26.5)."""
    due = payments.filter(refunds__in=Refund.objects.due_by_hand())
    for payment in _iterate(due.distinct()):
        way = MANUAL_GATEWAYS[payment.gateway].label.lower()
        yield payment, f"return the money ({way}), and confirm it on the page of the refund."


def _iterate(payments: QuerySet[Payment]) -> Iterator[Payment]:
    """Yield the payments with their reservations, in batches.

    Usually there are none. So the ids are read first, which only needs indexes.
    """
    ids = list(payments.order_by("pk").values_list("pk", flat=True))
    for first in range(0, len(ids), BATCH_SIZE):
        batch = Payment.objects.filter(pk__in=ids[first : first + BATCH_SIZE])
        yield from batch.select_related("reservation").order_by("pk")


def get_open_disputes(payments: QuerySet[Payment]) -> QuerySet[Dispute]:
    """Return open disputes, ordered by the time until which they must be answered."""
    return (
        Dispute.objects.filter(closed_at__isnull=True, payment__in=payments)
        .select_related("payment__reservation")
        .order_by(F("respond_by").asc(nulls_last=True), "pk")
    )


def get_unsent_emails(*, now: dt.datetime, since: dt.datetime) -> QuerySet[OutboxMessage]:
    """Return e-mails that failed after `since`, and those that have been waiting for too long."""
    failed = OutboxMessage.objects.filter(state=DeliveryState.FAILED, created_at__gte=since)
    waiting = OutboxMessage.objects.waiting().filter(created_at__lte=now - 4 * GATEWAY_PATIENCE)
    return (failed | waiting).order_by("-pk")
