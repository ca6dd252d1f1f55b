"""Whether the books are right after all that: ours, and the gateway's beside them."""

import datetime as dt
import io
from collections import Counter

from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState, RefundState
from reservations.booking import integrity
from reservations.models import Reservation
from reservations.models.status import Status

# What the gateway must say of the one payment that counts, by the reservation's status.
MONEY = {
    Status.CONFIRMED: "captured",
    Status.COMPLETED: "captured",
    Status.NO_SHOW: "captured",
    Status.PENDING: "authorized",
}
HELD_AT_MOST = dt.timedelta(hours=24)


def run_reconcile_payments() -> str:
    """`manage.py reconcile_payments`, which must be content: what it said."""
    told = io.StringIO()
    try:
        call_command("reconcile_payments", stdout=told)
    except CommandError as error:
        raise AssertionError(f"{told.getvalue()}\n{error}") from error
    return told.getvalue()


def count_captures() -> int:
    """How often the gateway really took money."""
    return sum(SandboxPayment.objects.values_list("captures", flat=True))


def count_statuses() -> Counter[str]:
    return Counter(Reservation.objects.values_list("status", flat=True))


def find_problems() -> list[str]:
    """Everything wrong once all is settled. Cancelled ones are taken to be wholly refunded."""
    now = timezone.now()
    found = [str(finding) for finding in integrity.find_problems(now=now)]
    theirs = {row.key: row for row in SandboxPayment.objects.all()}
    ours = Payment.objects.select_related("reservation").prefetch_related("refunds")
    by_reservation: dict[int, list[str]] = {}
    for payment in ours:
        row = theirs.pop(payment.key, None)
        name = f"payment {payment.pk} of reservation {payment.reservation_id}"
        state = row.state if row else "unknown"
        by_reservation.setdefault(payment.reservation_id, []).append(state)
        if payment.state == PaymentState.STARTED:
            found.append(f"{name} is still in doubt")
        elif payment.state != state:
            found.append(f"{name} is {payment.state} here and {state} at the gateway")
        if row and row.captures > 1:
            found.append(f"{name} was captured {row.captures} times")
        done = sum(each.amount for each in payment.refunds.all() if each.state == RefundState.DONE)
        if row and done != row.refunded:
            found.append(f"{name}: {done} given back here, {row.refunded} at the gateway")
        if any(each.state != RefundState.DONE for each in payment.refunds.all()):
            found.append(f"{name} has a refund that is not done")
    found += [
        f"the gateway has {row.key} as {row.state}, and nobody here knows it"
        for row in theirs.values()
        if row.state != "voided"
    ]
    for reservation in Reservation.objects.all():
        states = by_reservation.get(reservation.pk, [])
        found += _wrong_money(reservation, states)
        if reservation.status == Status.PROCESSING:
            found.append(f"{reservation} is still Processing")
        if reservation.hold_until and reservation.hold_until > now + HELD_AT_MOST:
            found.append(f"{reservation} is held until {reservation.hold_until}")
    return found


def _wrong_money(reservation: Reservation, states: list[str]) -> list[str]:
    """A booking without its money, or money without its booking."""
    open_states = [state for state in states if state in {"authorized", "captured"}]
    wanted = MONEY.get(Status(reservation.status))
    if wanted and reservation.total_cost:
        if open_states != [wanted]:
            return [f"{reservation} is {reservation.status}, its money is {states}"]
    elif open_states:
        return [f"{reservation} is {reservation.status}, and the gateway has money: {states}"]
    if states.count("captured") + states.count("refunded") > 1:
        return [f"{reservation} was charged more than once: {states}"]
    return []
