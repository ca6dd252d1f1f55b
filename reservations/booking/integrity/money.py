"""Checks that payments agree with the bookings, and that due refunds are paid."""

import datetime as dt

from django.conf import settings
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models import (
    COMPLETED_REFUND_STATES,
    Dispute,
    LedgerLine,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
    RefundState,
)
from payments.statements import get_refunds_payable
from reservations.booking.charging import CAPTURE_DUE_STATUSES
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    CheckList,
    Rows,
    approximately,
)
from reservations.models import BookingChange, ChangeState, LineItem, Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.db.sums import sum_of_related
from roombook.money import ROUNDING_TOLERANCE, ZERO, from_hundredths

CHECKS = CheckList()

# Staff return money when the customer comes, or with the next bank transfers.
BY_HAND_OVERDUE_AFTER = dt.timedelta(days=14)


# --- Shared with alerts.py ------------------------------------------------------------------------


def effective_refunds() -> QuerySet[Refund]:
    """Return the refunds that were paid in any way, or that are due."""
    return Refund.objects.exclude(state=RefundState.REFUSED)


def refunded_amount() -> Coalesce:
    """Return an expression for the amount of a payment that was refunded or is due for refund."""
    return sum_of_related(effective_refunds(), "amount", by="payment")


# --- Checks --------------------------------------------------------------------------------------


@CHECKS.add("reservation {}: its total is {}, its lines add up to {:.2f}")
def totals_that_are_not_their_lines(now: dt.datetime) -> Rows:
    """Find totals that are not the sum of their line items."""
    rows = Reservation.objects.annotate(
        lines=sum_of_related(LineItem.objects, "total", by="reservation")
    )
    rows = rows.exclude(lines__range=approximately(F("total_cost")))
    return rows.values_list("pk", "total_cost", "lines")


@CHECKS.add("payment {} is {}, and its reservation {} is {}")
def payments_off_their_reservation(now: dt.datetime) -> Rows:
    """Find payments in a state that contradicts the status of their reservation."""
    is_recent, status = _is_recent(now), "reservation__status__in"
    is_due = Q(is_recent, **{status: sorted(CAPTURE_DUE_STATUSES)})
    authorized = Q(state=PaymentState.AUTHORIZED)
    captured = Q(state=PaymentState.CAPTURED, counts=True)
    wrong = authorized & Q(counts=False) & ~is_recent
    wrong |= authorized & Q(counts=True) & ~is_due & ~Q(reservation__status=Status.PENDING)
    wrong |= Q(state=PaymentState.STARTED, purpose=PaymentPurpose.BOOKING) & ~Q(
        reservation__status=Status.PROCESSING
    )
    wrong |= captured & ~Q(**{status: [*sorted(BOOKED_STATUSES), Status.CANCELLED]})
    # A request can be paid at the desk, or on account, before it is approved (B26.3).
    wrong |= captured & Q(reservation__status=Status.PENDING) & ~Q(gateway__in=MANUAL_GATEWAYS)
    # A fee is captured before its cancellation is stored.
    wrong |= captured & Q(captured_at__gt=F("reservation__cancelled_at"))
    rows = Payment.objects.filter(wrong)
    return rows.values_list("pk", "state", "reservation", "reservation__status")


@CHECKS.add("reservation {} is {}, its payments add up to {:.2f}, its price is {:.2f}")
def bookings_without_payment(now: dt.datetime) -> Rows:
    """Find bookings whose payments add up to less than their price.

    What is above the price is to be refunded: `refunds_payable_without_refunds` finds it.
    """
    # A payment that staff have refunded voluntarily counts as well, but not for a request.
    held = Q(state__in=[PaymentState.AUTHORIZED, PaymentState.CAPTURED])
    held |= Q(state=PaymentState.REFUNDED) & ~Q(reservation__status=Status.PENDING)
    paying = Payment.objects.filter(held, counts=True)
    rows = Reservation.objects.filter(status__in=sorted(BOOKED_STATUSES)).annotate(
        charged=sum_of_related(paying, "amount", by="reservation")
    )
    rows = rows.filter(charged__lt=F("total_cost") - ROUNDING_TOLERANCE)
    return rows.values_list("pk", "status", "charged", "total_cost")


@CHECKS.add("payment {} is {}, and its change of reservation {} is {}")
def changes_off_their_payment(now: dt.datetime) -> Rows:
    """Find payments for changes in a state that contradicts that of the change.

    A cancellation voids the payment of an applied change if the gateway refuses its capture.
    """
    is_resolved = ~Q(payment__state=PaymentState.STARTED)
    is_voided = Q(payment__state=PaymentState.VOIDED)
    is_voided &= ~Q(payment__reservation__status=Status.CANCELLED)
    rows = BookingChange.objects.filter(payment__isnull=False).filter(
        Q(is_resolved, state=ChangeState.STARTED)
        | Q(is_voided, state=ChangeState.APPLIED)
        | Q(payment__state__in=["started", "declined"], state=ChangeState.APPLIED)
        | Q(payment__state=PaymentState.STARTED, state=ChangeState.ABANDONED)
    )
    return rows.values_list("payment", "payment__state", "payment__reservation", "state")


@CHECKS.add("payment {} of reservation {} was made for reservation {}")
def payments_of_another_reservation(now: dt.datetime) -> Rows:
    """Find payments that belong to another reservation than the one that was paid."""
    made_for = Reservation.objects.filter(uid=OuterRef("reservation_uid")).values("pk")
    rows = Payment.objects.exclude(reservation_uid__isnull=True).exclude(
        reservation_uid=F("reservation__uid")
    )
    rows = rows.annotate(made_for=Subquery(made_for))
    return rows.values_list("pk", "reservation", "made_for")


@CHECKS.add("payment {} is in {}, its reservation {} in {}")
def payments_in_another_currency(now: dt.datetime) -> Rows:
    """Find bills in one currency with a payment in another."""
    rows = Payment.objects.exclude(currency=F("reservation__currency"))
    return rows.values_list("pk", "currency", "reservation", "reservation__currency")


@CHECKS.add("reservation {} is billed in {}")
def bills_in_another_currency(now: dt.datetime) -> Rows:
    """Find reservations in another currency than the deployment's. No report has them."""
    rows = Reservation.objects.exclude(currency=settings.CURRENCY)
    return rows.values_list("pk", "currency")


@CHECKS.add("payment {} of {:%Y-%m-%d %H:%M} UTC was captured at {:%Y-%m-%d %H:%M} UTC")
def payments_at_impossible_times(now: dt.datetime) -> Rows:
    """Find payments that were captured before they were made, or in the future."""
    day = dt.timedelta(days=1)  # More than clocks differ by.
    rows = Payment.objects.filter(
        Q(captured_at__lt=F("created_at") - day) | Q(captured_at__gt=now + day)
    )
    return rows.values_list("pk", "created_at", "captured_at")


@CHECKS.add("dispute {} of {} is about payment {} of {}")
def disputes_above_their_payment(now: dt.datetime) -> Rows:
    """Find disputes about more than was paid."""
    rows = Dispute.objects.filter(amount__gt=F("payment__amount"))
    return rows.values_list("pk", "amount", "payment", "payment__amount")


@CHECKS.add("payment {} by {} of reservation {} was taken by nobody")
def manual_payments_of_nobody(now: dt.datetime) -> Rows:
    """Find payments in cash, at a terminal or on account that no member of staff has taken."""
    rows = Payment.objects.filter(gateway__in=MANUAL_GATEWAYS, taken_by=None)
    return rows.values_list("pk", "gateway", "reservation")


@CHECKS.add("payment {} of reservation {} is unresolved for over an hour")
def payments_forgotten(now: dt.datetime) -> Rows:
    """Find payments that have been unresolved for too long: reconcile_payments does not run."""
    rows = Payment.objects.filter(state=PaymentState.STARTED, lease_until__lt=now - OVERDUE_AFTER)
    return rows.values_list("pk", "reservation")


@CHECKS.add("payment {} of {} has refunds of {:.2f}")
def refunds_above_their_payment(now: dt.datetime) -> Rows:
    """Find payments with refunds that add up to more than the payment."""
    rows = Payment.objects.annotate(given=refunded_amount())
    rows = rows.filter(given__gt=F("amount") + ROUNDING_TOLERANCE)
    return rows.values_list("pk", "amount", "given")


@CHECKS.add("payment {} of {} is refunded, its refunds add up to {:.2f}")
def refunded_without_refunds(now: dt.datetime) -> Rows:
    """Find payments that are marked as refunded although their refunds do not add up to them."""
    rows = Payment.objects.filter(state=PaymentState.REFUNDED).annotate(given=refunded_amount())
    rows = rows.filter(given__lt=F("amount") - ROUNDING_TOLERANCE)
    return rows.values_list("pk", "amount", "given")


@CHECKS.add("payment {} of {} is captured, and is refunded in full")
def captured_though_refunded(now: dt.datetime) -> Rows:
    """Find payments that are marked as captured although they were refunded in full."""
    done = Refund.objects.filter(state__in=COMPLETED_REFUND_STATES)
    rows = Payment.objects.filter(state=PaymentState.CAPTURED).annotate(
        given=sum_of_related(done, "amount", by="payment")
    )
    rows = rows.filter(given__gte=F("amount") - ROUNDING_TOLERANCE)
    return rows.values_list("pk", "amount")


@CHECKS.add("refund {} of payment {} is due for over an hour")
def refunds_forgotten(now: dt.datetime) -> Rows:
    """Find refunds that have been due for too long: reconcile_payments does not run."""
    rows = Refund.objects.due().filter(created_at__lt=now - OVERDUE_AFTER)
    return rows.values_list("pk", "payment")


@CHECKS.add("refund {} of payment {} has not been returned by staff for over two weeks")
def manual_refunds_forgotten(now: dt.datetime) -> Rows:
    """Find refunds of cash, terminal and account payments that no staff has confirmed (B26.5)."""
    rows = Refund.objects.due_by_hand().filter(created_at__lt=now - BY_HAND_OVERDUE_AFTER)
    return rows.values_list("pk", "payment")


@CHECKS.add("reservation {}: {:.2f} is owed to its customer, and {:.2f} is being refunded")
def refunds_payable_without_refunds(now: dt.datetime) -> Rows:
    """Find money to be returned without a refund of it: the gateway refused it, or it is lost."""
    started = Refund.objects.filter(state=RefundState.STARTED).order_by()
    by_reservation = dict(started.values_list("payment__reservation").annotate(Sum("amount")))
    owed = get_refunds_payable(LedgerLine.objects.all()).filter(since__lt=now - OVERDUE_AFTER)
    for pk, hundredths in owed.values_list("reservation", "owed"):
        amount, refunded = from_hundredths(hundredths), by_reservation.get(pk, ZERO)
        if amount > refunded:
            yield pk, amount, refunded


def _is_recent(now: dt.datetime) -> Q:
    """Return the condition that the last known event of a payment is recent."""
    since = now - OVERDUE_AFTER
    return (
        Q(authorized_at__gt=since)
        | Q(captured_at__gt=since)
        | Q(reservation__cancelled_at__gt=since)
    )
