"""What must hold: after each rule, and when everything is settled."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from payments.ledger.accounts import Account
from payments.models import LedgerLine, Payment, PaymentState, Refund, RefundState
from payments.statements import Summary, summarize
from reservations.booking import integrity
from reservations.booking.integrity.money import ledger_off_the_facts
from reservations.models import AllowanceEntry, AllowanceUse, PromoCode, Reservation
from reservations.models.status import BOOKED_STATUSES, REVENUE_STATUSES, Status
from roombook.backoffice.models import AuditEntry
from roombook.money import ZERO, from_hundredths
from tests.payments.machine.banks import Bank, Money

MINUTE = dt.timedelta(minutes=1)
# PAYMENT_ACTION_MINUTES.
CONFIRMATION_TIME = 15 * MINUTE
STATES_WITH_MONEY = {"authorized", "captured", "refunded"}
# What it holds, and what it has kept of that.
AT_THE_GATEWAY = (Account.GATEWAY, Account.GATEWAY_FEES, Account.DISPUTES_LOST)
USING_BENEFITS = BOOKED_STATUSES | {Status.PROCESSING}


def find_problems(bank: Bank) -> Iterator[str]:
    """Everything that must never be seen, not even briefly."""
    reservations = list(Reservation.objects.prefetch_related("payments__refunds"))
    all_money = bank.read_money()
    for reservation in reservations:
        for problem in _find_problems_of(reservation, all_money):
            yield f"{reservation.status} {reservation.pk}: {problem}"
    yield from _find_problems_of_the_ledger(reservations, all_money)
    using = [each for each in reservations if each.status in USING_BENEFITS]
    promo = PromoCode.objects.get()
    promoted = sum(each.promo_code_id is not None for each in using)
    if promo.uses != promoted:
        yield f"the promo code has {promo.uses} uses, for {promoted} reservations"
    entered, listed = _sum_hours(AllowanceEntry), _sum_hours(AllowanceUse)
    for reservation in reservations:
        used = -entered.get(reservation.pk, 0)
        if used != (listed.get(reservation.pk, 0) if reservation in using else 0):
            yield f"{reservation.status} {reservation.pk}: {used} hours used, of {listed}"


def _find_problems_of_the_ledger(
    reservations: Iterable[Reservation], all_money: Mapping[UUID, Money]
) -> Iterator[str]:
    """Compare the ledger with our rows, with the gateway's list, and with what staff read."""
    yield from map(str, ledger_off_the_facts(timezone.now()))
    lines = defaultdict[int, list[LedgerLine]](list)
    for line in LedgerLine.objects.order_by("at", "pk"):
        lines[line.reservation_id].append(line)
    for reservation in reservations:
        accounts, summaries = Counter[str](), [Summary(ZERO, ZERO, ZERO)]
        for line, after in summarize(lines[reservation.pk]):
            accounts.update(dict(line.amounts))
            summaries.append(after)
        summary, price = summaries[-1], reservation.total_cost
        if accounts.total():
            yield f"{reservation.pk}: its accounts add up to {accounts.total()}"
        payments = list(reservation.payments.all())
        money = [(each, all_money[each.key]) for each in payments if each.key in all_money]
        if _get_due_refunds(payments) or any(
            bank.captures and not each.captured_at for each, bank in money
        ):
            continue  # The gateway may have done what is not known yet.
        kept = sum((bank.kept for _, bank in money), ZERO)
        held = from_hundredths(sum(accounts[each] for each in AT_THE_GATEWAY))
        if held != kept:
            yield f"{reservation.pk}: the account of the gateway holds {held}, the gateway {kept}"
        if (summary.paid, summary.owed) != (kept, summary.bill - kept):
            yield f"{reservation.pk}: {kept} is paid, and the page says {summary}"
        if reservation.status in REVENUE_STATUSES and summary.bill != price:
            yield f"{reservation.pk}: the price is {price}, and the page says {summary}"


def _sum_hours(model: type[AllowanceEntry | AllowanceUse]) -> dict[int, Decimal]:
    return dict(model.objects.order_by().values_list("reservation").annotate(Sum("hours")))


def _find_problems_of(reservation: Reservation, all_money: Mapping[UUID, Money]) -> Iterator[str]:
    payments = list(reservation.payments.all())
    money = [all_money[each.key] for each in payments if each.key in all_money]
    if any(each.captures > 1 for each in money) or sum(each.captures for each in money) > 1:
        yield f"captured more than once: {money}"
    kept = sum((each.kept for each in money), Decimal(0))
    # The gateway may have executed a refund that we still call due.
    due = sum((each.amount for each in _get_due_refunds(payments)), Decimal(0))
    price = reservation.total_cost
    if reservation.status in BOOKED_STATUSES:
        wanted = {"authorized", "captured"} - (
            {"captured"} if reservation.status == Status.PENDING else set()
        )
        if price and [each.amount for each in money if each.state in wanted] != [price]:
            yield f"{price} is not secured by {money}"
        if kept not in {0, price}:
            yield f"{kept} was charged and not {price}"
        if reservation.booked_at is None or reservation.booked_at >= reservation.start:
            yield "was booked after its start"
    elif reservation.status == Status.CANCELLED:
        fee = _calculate_fee(reservation)
        if fee not in {kept, kept - due}:
            yield f"{kept} charged, {due} to be refunded, and the fee is {fee}"
    elif 0 not in {kept, kept - due}:
        yield f"{kept} charged, {due} to be refunded, without a booking"


def _get_due_refunds(payments: list[Payment]) -> list[Refund]:
    return [
        refund
        for payment in payments
        for refund in payment.refunds.all()
        if refund.state == RefundState.STARTED
    ]


def _calculate_fee(reservation: Reservation) -> Decimal:
    """The fee of a cancelled reservation by its policy (B15.4), whatever was promised."""
    at, booked_at = reservation.cancelled_at, reservation.booked_at
    if at is None or booked_at is None or not _was_confirmed(reservation):
        return Decimal(0)
    [[hours, _]] = reservation.cancellation_terms["steps"]
    grace = reservation.cancellation_terms["grace_minutes"] * MINUTE
    is_free = at < max(reservation.start - hours * 60 * MINUTE, booked_at + grace)
    return Decimal(0) if is_free else reservation.total_cost


def _was_confirmed(reservation: Reservation) -> bool:
    """Whether it was Confirmed until it was cancelled, by its history."""
    entries = AuditEntry.objects.filter(object_id=reservation.pk)
    changes = entries.order_by("-pk").values_list("changes", flat=True)
    return [Status.CONFIRMED, Status.CANCELLED] in (each.get("status") for each in changes)


def find_due() -> set[str]:
    """Return the captures, voids and refunds that the database says must happen."""
    booking_or_none = Payment.objects.authorized().exclude(
        reservation__status__in=[Status.PENDING, Status.PROCESSING]
    )
    return {f"payment {each.pk} is not settled" for each in booking_or_none} | {
        f"refund {each.pk} is not executed" for each in Refund.objects.due()
    }


def is_overdue(reservation: Reservation, now: dt.datetime) -> bool:
    """Whether a request may have expired: it has begun, or was not answered in time."""
    patience = dt.timedelta(hours=settings.PENDING_HOURS)
    booked_at = reservation.booked_at
    return reservation.start <= now or (booked_at is not None and booked_at + patience <= now)


def find_late_holds(now: dt.datetime) -> Iterator[str]:
    """Rooms that are held for too long, just after a run of reconcile_payments."""
    for payment in Payment.objects.filter(reservation__status=Status.PROCESSING):
        if payment.state == PaymentState.STARTED and (
            now > payment.created_at + CONFIRMATION_TIME + MINUTE
        ):
            yield f"{payment.reservation_id} is Processing since {now - payment.created_at}"
    processing = Reservation.objects.filter(status=Status.PROCESSING)
    for reservation in processing.exclude(payments__state=PaymentState.STARTED):
        yield f"{reservation.pk} is Processing without a payment"


def find_unsettled(bank: Bank, now: dt.datetime) -> Iterator[str]:
    """What is left although reconcile_payments has run and nobody acts."""
    yield from find_late_holds(now)
    known, all_money = set(), bank.read_money()
    for payment in Payment.objects.select_related("reservation"):
        money = all_money.get(payment.key)
        status = payment.reservation.status
        known.add(payment.key)
        name = f"payment of {status} {payment.reservation_id}"
        if money is None:
            if payment.state != PaymentState.VOIDED:
                yield f"{name}: the gateway has no {payment.state} payment"
            continue
        if money.state != payment.state and {money.state, payment.state} & STATES_WITH_MONEY:
            yield f"{name}: {payment.state} here, {money.state} at the gateway"
        if money.state == "authorized" and status != Status.PENDING:
            yield f"{name}: still authorized"
        if payment.refunds.filter(state=RefundState.STARTED).exists():
            yield f"{name}: a refund is still due"
        if payment.refunds.filter(state=RefundState.REFUSED).exists():
            yield f"{name}: a refund was refused"
    if (
        unknown := {key for key, each in all_money.items() if each.state in STATES_WITH_MONEY}
        - known
    ):
        yield f"the gateway has money of {len(unknown)} unknown payments"
    if Reservation.objects.filter(status=Status.PROCESSING).exists():
        yield "a reservation is still Processing"
    yield from map(str, integrity.find_problems(now=now))
