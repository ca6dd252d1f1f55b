"""Checks that bookings, payments, the ledger and receipts agree."""

import datetime as dt
from itertools import islice
from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Concat, TruncDate

from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.gateways.stripe.gateway import StripeGateway
from payments.gateways.stripe_models import StripePayment
from payments.ledger.accounts import Account, EventKind
from payments.ledger.posting import find_unposted
from payments.models import (
    COMPLETED_REFUND_STATES,
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
    Receipt,
    ReceiptEntry,
    ReceiptSeries,
    ReceiptType,
    RefundOverride,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.receipts.issuing import find_payments_without_credit_note
from roombook.db.sums import MONEY_FIELD, sum_of_related
from roombook.money import ROUNDING_TOLERANCE, ZERO, format_amount, from_hundredths

CHECKS = CheckList()

# How the reasons of refunds begin that the gateway has reported.
REPORTED = "Made at the gateway"
# Staff return money when the customer comes, or with the next bank transfers.
BY_HAND_OVERDUE_AFTER = dt.timedelta(days=14)


# --- Checks --------------------------------------------------------------------------------------


@CHECKS.add("reservation {pk}: its total is {total_cost}, its lines add up to {lines:.2f}")
def totals_that_are_not_their_lines(now: dt.datetime) -> Rows:
    rows = Reservation.objects.annotate(
        lines=sum_of_related(LineItem.objects, "total", by="reservation")
    )
    return rows.exclude(lines__range=approximately(F("total_cost")))


@CHECKS.add("payment {pk} is {state}, and its reservation {reservation} is {reservation__status}")
def payments_off_their_reservation(now: dt.datetime) -> Rows:
    since, status = now - OVERDUE_AFTER, "reservation__status__in"
    is_recent = Q(authorized_at__gt=since) | Q(captured_at__gt=since)
    is_recent |= Q(reservation__cancelled_at__gt=since)
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
    return Payment.objects.filter(wrong)


@CHECKS.add(
    "reservation {pk} is {status}, its payments are {charged:.2f}, its price {total_cost:.2f}"
)
def bookings_without_payment(now: dt.datetime) -> Rows:
    # What is above the price is to be refunded: `refunds_payable_without_refunds` finds it.
    # A payment that staff have refunded voluntarily counts as well, but not for a request.
    held = Q(state__in=[PaymentState.AUTHORIZED, PaymentState.CAPTURED])
    held |= Q(state=PaymentState.REFUNDED) & ~Q(reservation__status=Status.PENDING)
    paying = Payment.objects.filter(held, counts=True)
    rows = Reservation.objects.filter(status__in=sorted(BOOKED_STATUSES)).annotate(
        charged=sum_of_related(paying, "amount", by="reservation")
    )
    return rows.filter(charged__lt=F("total_cost") - ROUNDING_TOLERANCE)


@CHECKS.add("payment {payment} is {payment__state}, its change of {payment__reservation} {state}")
def changes_off_their_payment(now: dt.datetime) -> Rows:
    # A cancellation voids the payment of an applied change if the gateway refuses its capture.
    is_resolved = ~Q(payment__state=PaymentState.STARTED)
    is_voided = Q(payment__state=PaymentState.VOIDED)
    is_voided &= ~Q(payment__reservation__status=Status.CANCELLED)
    return BookingChange.objects.filter(payment__isnull=False).filter(
        Q(is_resolved, state=ChangeState.STARTED)
        | Q(is_voided, state=ChangeState.APPLIED)
        | Q(payment__state__in=["started", "declined"], state=ChangeState.APPLIED)
        | Q(payment__state=PaymentState.STARTED, state=ChangeState.ABANDONED)
        | Q(payment__counts=True, state=ChangeState.ABANDONED)
        | ~Q(payment__reservation=F("reservation"), payment__purpose=PaymentPurpose.CHANGE)
        | ~Q(new_total__range=approximately(F("old_total") + F("payment__amount")))
    )


@CHECKS.add("payment {pk} of reservation {reservation} is for a change that does not exist")
def payments_for_changes_without_them(now: dt.datetime) -> Rows:
    return Payment.objects.filter(purpose=PaymentPurpose.CHANGE, change=None)


@CHECKS.add("payment {pk} of reservation {reservation} is unresolved for over an hour")
def payments_forgotten(now: dt.datetime) -> Rows:
    return Payment.objects.filter(state=PaymentState.STARTED, lease_until__lt=now - OVERDUE_AFTER)


@CHECKS.add("payment {pk} of {amount} ({currency}, {state}) is not what {gateway} has")
def payments_off_the_gateway(now: dt.datetime) -> Rows:
    # Those at Stripe itself are compared by `reconcile_payments`.
    made = Refund.objects.filter(state=RefundState.DONE).exclude(reason__startswith=REPORTED)
    settled = Payment.objects.exclude(state=PaymentState.STARTED).exclude(
        Q(authorized_at__gt=now - OVERDUE_AFTER) | Q(captured_at__gt=now - OVERDUE_AFTER)
    )
    settled = settled.annotate(given=sum_of_related(made, "amount", by="payment"))
    row = SandboxPayment.objects.filter(key=OuterRef("key"))
    same = row.filter(amount=OuterRef("amount"), currency=OuterRef("currency"))
    at_sandbox, at_stripe = Q(gateway=SandboxGateway.name), Q(gateway=StripeGateway.name)
    captured, authorized = Q(captured_at__isnull=False), Q(state=PaymentState.AUTHORIZED)
    refunded = OuterRef("given") - ROUNDING_TOLERANCE
    at_fault: Any = at_sandbox & (
        captured & ~Exists(same.filter(captures=1, refunded__gte=refunded))
        | authorized & ~Exists(same.filter(captures=0))
        | ~captured & Exists(row.filter(captures__gt=0, refunded__lt=F("amount")))
    )
    stored = StripePayment.objects.filter(key=OuterRef("key"))
    kept = Q(created_at__gt=get_kept_since("BOOKS_YEARS", now))
    at_fault |= at_stripe & kept & (captured | authorized) & ~Exists(stored)
    at_fault |= ~(at_sandbox | at_stripe | Q(gateway__in=MANUAL_GATEWAYS))
    return settled.filter(at_fault)


@CHECKS.add("payment {pk} of {amount} is {state}, its refunds add up to {given:.2f}")
def refunds_off_their_payment(now: dt.datetime) -> Rows:
    made = Refund.objects.filter(state__in=COMPLETED_REFUND_STATES)
    rows = Payment.objects.annotate(
        given=sum_refunds(), made=sum_of_related(made, "amount", by="payment")
    )
    return rows.filter(
        Q(given__gt=F("amount") + ROUNDING_TOLERANCE)
        | Q(state=PaymentState.REFUNDED, given__lt=F("amount") - ROUNDING_TOLERANCE)
        | Q(state=PaymentState.CAPTURED, made__gte=F("amount") - ROUNDING_TOLERANCE)
    )


@CHECKS.add("refund {pk} of payment {payment} retries refund {again} of payment {again__payment}")
def retries_off_their_refund(now: dt.datetime) -> Rows:
    # It is of less if another refund has returned a part meanwhile.
    return Refund.objects.filter(again__isnull=False).exclude(
        again__state=RefundState.REFUSED,
        again__payment=F("payment"),
        again__amount__gte=F("amount"),
    )


@CHECKS.add(
    "reservation {reservation} is {reservation__status}: {refund} was decided, {promised} promised"
)
def refund_overrides_off_their_promise(now: dt.datetime) -> Rows:
    steps = get_history(Reservation, "reservation").filter(changes__has_key="refund_promised")
    promised = steps.annotate(sum=KT("changes__refund_promised__1")).values("sum")[:1]
    rows = RefundOverride.objects.annotate(promised=Subquery(promised))
    return rows.filter(
        ~Q(reservation__status=Status.CANCELLED)
        | ~Q(refund=Cast("promised", MONEY_FIELD), promised__isnull=False)
        & Q(at__gt=get_kept_since("AUDIT_LOG_DAYS", now))
    )


@CHECKS.add("refund {pk} of payment {payment} is due since {created_at}")
def refunds_forgotten(now: dt.datetime) -> Rows:
    by_staff = Refund.objects.due_by_hand().filter(created_at__lt=now - BY_HAND_OVERDUE_AFTER)
    return Refund.objects.due().filter(created_at__lt=now - OVERDUE_AFTER) | by_staff


@CHECKS.add("reservation {}: {:.2f} is owed to its customer, and {:.2f} is being refunded")
def refunds_payable_without_refunds(now: dt.datetime) -> Rows:
    started = Refund.objects.filter(state=RefundState.STARTED).order_by()
    by_reservation = dict(started.values_list("payment__reservation").annotate(Sum("amount")))
    owed = get_refunds_payable(LedgerLine.objects.all()).filter(since__lt=now - OVERDUE_AFTER)
    for pk, hundredths in owed.values_list("reservation", "owed"):
        amount, refunded = from_hundredths(hundredths), by_reservation.get(pk, ZERO)
        if amount > refunded:
            yield pk, amount, refunded


BATCH_SIZE = 1_000


@CHECKS.add("reservation {}: bill and payments differ from the ledger: {}")
def ledger_off_the_facts(now: dt.datetime) -> Rows:
    ids = Reservation.objects.order_by("pk").values_list("pk", flat=True).iterator(BATCH_SIZE)
    while batch := list(islice(ids, BATCH_SIZE)):
        for pk, bill, lines in find_unposted(batch, now=now):
            differences = (
                f"{account.label} {format_amount(from_hundredths(line[account]), bill.currency)}"
                for line in lines.values()
                for account in Account
                if line[account]
            )
            if lines:
                yield pk, ", ".join(differences) or "bookings"


@CHECKS.add("reservation {reservation}: line {pk} of the ledger corrects what no event has posted")
def corrected_lines(now: dt.datetime) -> Rows:
    return LedgerLine.objects.filter(kind=EventKind.CORRECTED)


@CHECKS.add("reservation {reservation}: line {pk} of {at} is of {day}")
def lines_at_an_impossible_time(now: dt.datetime) -> Rows:
    day = dt.timedelta(days=1)  # Time zones differ by less.
    wrong = Q(day__lt=TruncDate(F("at") - day)) | Q(day__gt=TruncDate(F("at") + day))
    return LedgerLine.objects.filter(wrong)


@CHECKS.add("{} of reservation {} was at {}, and its line says {}")
def payments_and_refunds_off_their_line(now: dt.datetime) -> Rows:
    is_received = Q(gateway=ACCOUNT.name, received_at__isnull=False)
    captured, received = Payment.objects.exclude(is_received), Payment.objects.filter(is_received)
    made = Refund.objects.filter(state__in=COMPLETED_REFUND_STATES)
    # A refund is posted soon after the gateway has made it.
    at_once, soon = dt.timedelta(0), OVERDUE_AFTER
    for name, rows, reservation, at, kind, within in (
        ("payment", captured, "reservation", "captured_at", EventKind.PAID, at_once),
        ("payment", received, "reservation", "received_at", EventKind.RECEIVED, at_once),
        ("refund", made, "payment__reservation", "done_at", EventKind.RETURNED, soon),
    ):
        lines = LedgerLine.objects.filter(
            reservation=OuterRef(reservation), cause=OuterRef("cause"), kind=kind
        )
        same = lines.filter(at__range=(OuterRef(at) - within, OuterRef(at) + within))
        found = rows.annotate(
            cause=Concat(Value(f"{name} "), "pk", output_field=TextField()),
            posted=Subquery(lines.order_by("-pk").values("at")[:1]),
        ).filter(~Exists(same), posted__isnull=False)
        yield from found.values_list("cause", reservation, at, "posted")


@CHECKS.add("payment {pk} of {amount} has receipts of {covered:.2f} and refunds of {given:.2f}")
def receipts_above_their_payment(now: dt.datetime) -> Rows:
    return find_payments_without_credit_note(now=now - OVERDUE_AFTER)


@CHECKS.add("receipt {number} has a total of {total}, its entries add up to {entered:.2f}")
def receipts_off_their_entries(now: dt.datetime) -> Rows:
    rows = Receipt.objects.annotate(
        signed=Case(
            When(type=ReceiptType.RECEIPT, then=F("total")),
            default=-F("total"),
            output_field=MONEY_FIELD,
        ),
        entered=sum_of_related(ReceiptEntry.objects, "amount", by="receipt"),
    )
    return rows.exclude(entered__range=approximately(F("signed")))


@CHECKS.add("series {name} is at {last_number}, it has {count} documents up to number {highest}")
def gaps_between_receipts(now: dt.datetime) -> Rows:
    rows = ReceiptSeries.objects.annotate(
        count=Count("receipts"), highest=Max("receipts__number_in_series")
    )
    return rows.exclude(count=F("last_number"), highest=F("last_number"))


@CHECKS.add("receipt {number} of {issued_at} says nothing any more")
def receipts_emptied_too_early(now: dt.datetime) -> Rows:
    return Receipt.objects.filter(content={}, issued_at__gt=get_kept_since("BOOKS_YEARS", now))
