"""Checks that payments agree with the bookings, and that due refunds are paid."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Subquery, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.gateways.stripe.gateway import StripeGateway
from payments.gateways.stripe_models import StripePayment
from payments.models import (
    COMPLETED_REFUND_STATES,
    Dispute,
    GatewayCheckpoint,
    LedgerLine,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
    RefundState,
)
from payments.refunds import sum_refunds
from payments.statements import get_refunds_payable
from reservations.booking.charging import CAPTURE_DUE_STATUSES
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    CheckList,
    Rows,
    approximately,
    get_history,
    get_kept_since,
)
from reservations.models import (
    BookingChange,
    ChangeState,
    LineItem,
    PromoRedemption,
    RefundOverride,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, Status
from roombook.db.sums import MONEY_FIELD, sum_of_related
from roombook.money import ROUNDING_TOLERANCE, ZERO, from_hundredths

CHECKS = CheckList()

# By model: when its rows are made, and what can only happen after that.
TIMES: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (Reservation, "created_at", ("created_at", "booked_at", "cancelled_at", "checked_in_at")),
    (Payment, "reservation__created_at", ("created_at",)),
    (
        Payment,
        "created_at",
        ("authorized_at", "captured_at", "received_at", "closed_at"),
    ),
    (Refund, "payment__created_at", ("created_at", "done_at")),
    (Dispute, "opened_at", ("opened_at", "closed_at")),
    (BookingChange, "created_at", ("created_at", "resolved_at")),
    (PromoRedemption, "taken_at", ("taken_at", "given_back_at")),
)

# How the reasons of refunds begin that the gateway has reported.
REPORTED = "Made at the gateway"
# Staff return money when the customer comes, or with the next bank transfers.
BY_HAND_OVERDUE_AFTER = dt.timedelta(days=14)


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
    """Find payments for changes in a state that contradicts the change, or of another amount.

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
        | Q(payment__counts=True, state=ChangeState.ABANDONED)
        | ~Q(payment__reservation=F("reservation"), payment__purpose=PaymentPurpose.CHANGE)
        | ~Q(new_total__range=approximately(F("old_total") + F("payment__amount")))
    )
    return rows.values_list("payment", "payment__state", "payment__reservation", "state")


@CHECKS.add("payment {} of reservation {} is for a change that does not exist")
def payments_for_changes_without_them(now: dt.datetime) -> Rows:
    """Find payments for a change of which nothing is stored."""
    rows = Payment.objects.filter(purpose=PaymentPurpose.CHANGE, change=None)
    return rows.values_list("pk", "reservation")


@CHECKS.add("payment {} of reservation {} was made for reservation {}")
def payments_of_another_reservation(now: dt.datetime) -> Rows:
    """Find payments that belong to another reservation than the one that was paid."""
    made_for = Reservation.objects.filter(uid=OuterRef("reservation_uid")).values("pk")
    rows = Payment.objects.exclude(reservation_uid=F("reservation__uid"))
    rows = rows.annotate(made_for=Subquery(made_for))
    return rows.values_list("pk", "reservation", "made_for")


@CHECKS.add("payment {} is held for center {}, its reservation {} is at center {}")
def payments_at_another_center(now: dt.datetime) -> Rows:
    """Find payments that are not captured yet, for a center that does not have the booking."""
    rows = Payment.objects.filter(state=PaymentState.AUTHORIZED, counts=True)
    rows = rows.exclude(cash_center=F("reservation__room__center"))
    return rows.values_list("pk", "cash_center", "reservation", "reservation__room__center")


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


@CHECKS.add("{} {}: {} is {:%Y-%m-%d %H:%M} UTC, and {} {:%Y-%m-%d %H:%M} UTC")
def times_out_of_order(now: dt.datetime) -> Rows:
    """Find rows with a time in the future, or before the time at which they were made."""
    day = dt.timedelta(days=1)  # More than clocks differ by.
    for model, made, times in TIMES:
        for time in times:
            rows = model.objects.filter(
                Q(**{f"{time}__lt": F(made) - day}) | Q(**{f"{time}__gt": now + day})
            )
            for pk, at, made_at in rows.values_list("pk", time, made):
                yield model._meta.verbose_name, pk, time, at, made, made_at


@CHECKS.add("dispute {} is in {}, its payment {} in {}")
def disputes_in_another_currency(now: dt.datetime) -> Rows:
    """Find disputes in another currency than their payment.

    Its amount can be more than was paid, as the rates of the customer's bank change.
    """
    rows = Dispute.objects.exclude(currency=F("payment__currency"))
    return rows.values_list("pk", "currency", "payment", "payment__currency")


@CHECKS.add("payment {} of reservation {} is unresolved for over an hour")
def payments_forgotten(now: dt.datetime) -> Rows:
    """Find payments that have been unresolved for too long: reconcile_payments does not run."""
    rows = Payment.objects.filter(state=PaymentState.STARTED, lease_until__lt=now - OVERDUE_AFTER)
    return rows.values_list("pk", "reservation")


@CHECKS.add("payment {} of {} ({}, {}) is not what {} has")
def payments_off_the_gateway(now: dt.datetime) -> Rows:
    """Find payments of which the gateway's own rows say something else, or nothing.

    Those at Stripe itself are compared by `reconcile_payments`.
    """
    settled = Payment.objects.exclude(state=PaymentState.STARTED).exclude(
        Q(authorized_at__gt=now - OVERDUE_AFTER) | Q(captured_at__gt=now - OVERDUE_AFTER)
    )
    row = SandboxPayment.objects.filter(key=OuterRef("key"))
    same = row.filter(amount=OuterRef("amount"), currency=OuterRef("currency"))
    at_sandbox, at_stripe = Q(gateway=SandboxGateway.name), Q(gateway=StripeGateway.name)
    captured, authorized = Q(captured_at__isnull=False), Q(state=PaymentState.AUTHORIZED)
    at_fault: Any = at_sandbox & (
        captured & ~Exists(same.filter(captures=1))
        | authorized & ~Exists(same.filter(captures=0))
        | ~captured & Exists(row.filter(captures__gt=0, refunded__lt=F("amount")))
    )
    stored = StripePayment.objects.filter(key=OuterRef("key"))
    kept = Q(created_at__gt=get_kept_since("BOOKS_YEARS", now))
    at_fault |= at_stripe & kept & (captured | authorized) & ~Exists(stored)
    at_fault |= ~(at_sandbox | at_stripe | Q(gateway__in=MANUAL_GATEWAYS))
    rows = settled.filter(at_fault)
    return rows.values_list("pk", "amount", "currency", "state", "gateway")


@CHECKS.add("payment {} has refunds of {:.2f} that the gateway does not have")
def refunds_off_the_gateway(now: dt.datetime) -> Rows:
    """Find payments of which we have refunded more than the sandbox has."""
    made = Refund.objects.filter(state=RefundState.DONE).exclude(reason__startswith=REPORTED)
    refunded = SandboxPayment.objects.filter(key=OuterRef("key")).values("refunded")
    rows = Payment.objects.filter(gateway=SandboxGateway.name).annotate(
        given=sum_of_related(made, "amount", by="payment"), refunded=Subquery(refunded)
    )
    rows = rows.filter(given__gt=F("refunded") + ROUNDING_TOLERANCE)
    return rows.values_list("pk", "given")


@CHECKS.add("{} is compared until {:%Y-%m-%d %H:%M} UTC")
def comparisons_in_the_future(now: dt.datetime) -> Rows:
    """Find gateways that are not compared with our payments, because that is done already."""
    rows = GatewayCheckpoint.objects.filter(compared_until__gt=now + OVERDUE_AFTER)
    return ((f"gateway {name}", at) for name, at in rows.values_list("gateway", "compared_until"))


@CHECKS.add("payment {} of {} has refunds of {:.2f}")
def refunds_above_their_payment(now: dt.datetime) -> Rows:
    """Find payments with refunds that add up to more than the payment."""
    rows = Payment.objects.annotate(given=sum_refunds())
    rows = rows.filter(given__gt=F("amount") + ROUNDING_TOLERANCE)
    return rows.values_list("pk", "amount", "given")


@CHECKS.add("payment {} of {} is refunded, its refunds add up to {:.2f}")
def refunded_without_refunds(now: dt.datetime) -> Rows:
    """Find payments that are marked as refunded although their refunds do not add up to them."""
    rows = Payment.objects.filter(state=PaymentState.REFUNDED).annotate(given=sum_refunds())
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


@CHECKS.add("refund {} of payment {} is a retry of refund {} of payment {}")
def retries_off_their_refund(now: dt.datetime) -> Rows:
    """Find retries of a refund that was not refused, or of another payment, or of more.

    It is of less if another refund has returned a part meanwhile.
    """
    rows = Refund.objects.filter(again__isnull=False).exclude(
        again__state=RefundState.REFUSED,
        again__payment=F("payment"),
        again__amount__gte=F("amount"),
    )
    return rows.values_list("pk", "payment", "again", "again__payment")


@CHECKS.add("reservation {} is {}: a refund of {} was decided, and {} promised")
def refund_overrides_off_their_promise(now: dt.datetime) -> Rows:
    """Find decisions of staff about a refund that their cancellation has not promised."""
    steps = get_history(Reservation, "reservation").filter(changes__has_key="refund_promised")
    promised = steps.annotate(sum=KT("changes__refund_promised__1")).values("sum")[:1]
    rows = RefundOverride.objects.annotate(promised=Subquery(promised))
    rows = rows.filter(
        ~Q(reservation__status=Status.CANCELLED)
        | ~Q(refund=Cast("promised", MONEY_FIELD), promised__isnull=False)
        & Q(at__gt=get_kept_since("AUDIT_LOG_DAYS", now))
    )
    return rows.values_list("reservation", "reservation__status", "refund", "promised")


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
