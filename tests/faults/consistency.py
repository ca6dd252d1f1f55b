"""Checks that our data is consistent, with itself and with the gateway's."""

import datetime as dt
import io
from collections import Counter, defaultdict
from decimal import Decimal

from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentPurpose, PaymentState, RefundState
from payments.models.refunds import COMPLETED_REFUND_STATES
from reservations.booking import integrity
from reservations.models import Reservation
from reservations.models.status import Status

# The state of a reservation's payment at the gateway, by the status of the reservation.
EXPECTED_PAYMENT_STATES = {
    Status.CONFIRMED: "captured",
    Status.COMPLETED: "captured",
    Status.NO_SHOW: "captured",
    Status.PENDING: "authorized",
}
MAX_HOLD = dt.timedelta(hours=24)


def run_reconcile_payments() -> str:
    """The output of `manage.py reconcile_payments`, which must succeed."""
    output = io.StringIO()
    try:
        call_command("reconcile_payments", stdout=output)
    except CommandError as error:
        raise AssertionError(f"{output.getvalue()}\n{error}") from error
    return output.getvalue()


def count_captures() -> int:
    """How often the gateway has captured a payment."""
    return sum(SandboxPayment.objects.values_list("captures", flat=True))


def count_statuses() -> Counter[str]:
    return Counter(Reservation.objects.values_list("status", flat=True))


def find_problems() -> list[str]:
    """All inconsistencies once everything is resolved.

    Cancelled reservations are expected to be fully refunded.
    """
    now = timezone.now()
    found = [str(finding) for finding in integrity.find_problems(now=now)]
    at_gateway = {row.key: row for row in SandboxPayment.objects.all()}
    payments = Payment.objects.select_related("reservation").prefetch_related("refunds")
    by_reservation: dict[int, list[str]] = {}
    paid: dict[int, Decimal] = defaultdict(Decimal)
    for payment in payments:
        if payment.gateway in MANUAL_GATEWAYS:
            done = payment.refunds.filter(state__in=COMPLETED_REFUND_STATES)
            kept = payment.amount - sum(each.amount for each in done)
            paid[payment.reservation_id] += kept
            if payment.purpose == PaymentPurpose.BOOKING:
                state = "captured" if kept else "refunded"
                by_reservation.setdefault(payment.reservation_id, []).append(state)
            continue
        row = at_gateway.pop(payment.key, None)
        name = f"payment {payment.pk} of reservation {payment.reservation_id}"
        state = row.state if row else "unknown"
        if row and row.captures:
            paid[payment.reservation_id] += row.amount - row.refunded
        if payment.purpose == PaymentPurpose.BOOKING:
            by_reservation.setdefault(payment.reservation_id, []).append(state)
        elif state == "authorized":
            found.append(f"{name}, for a change, is only authorized")
        if payment.state == PaymentState.STARTED:
            found.append(f"{name} is not resolved")
        elif payment.state != state:
            found.append(f"{name} is {payment.state} here and {state} at the gateway")
        if row and row.captures > 1:
            found.append(f"{name} was captured {row.captures} times")
        done = sum(each.amount for each in payment.refunds.all() if each.state == RefundState.DONE)
        if row and done != row.refunded:
            found.append(f"{name}: {done} refunded here, {row.refunded} at the gateway")
        if any(each.state != RefundState.DONE for each in payment.refunds.all()):
            found.append(f"{name} has a refund that is not done")
    found += [
        f"the gateway has {row.key} as {row.state}, but we do not know it"
        for row in at_gateway.values()
        if row.state != "voided"
    ]
    for reservation in Reservation.objects.all():
        states = by_reservation.get(reservation.pk, [])
        found += _find_payment_problems(reservation, states)
        is_paid = EXPECTED_PAYMENT_STATES.get(Status(reservation.status)) == "captured"
        price = reservation.total_cost if is_paid else 0
        if paid[reservation.pk] != price:
            found.append(f"{reservation} costs {price}, and {paid[reservation.pk]} is paid")
        if reservation.status == Status.PROCESSING:
            found.append(f"{reservation} is still Processing")
        if reservation.hold_until and reservation.hold_until > now + MAX_HOLD:
            found.append(f"{reservation} is held until {reservation.hold_until}")
    return found


def _find_payment_problems(reservation: Reservation, states: list[str]) -> list[str]:
    """A booking without its payment, or a payment without its booking.

    `states` are those of the payments for the booking itself, at the gateway.
    """
    open_states = [state for state in states if state in {"authorized", "captured"}]
    wanted = EXPECTED_PAYMENT_STATES.get(Status(reservation.status))
    if wanted and reservation.total_cost:
        if open_states != [wanted]:
            return [f"{reservation} is {reservation.status}, its payments are {states}"]
    elif open_states:
        return [f"{reservation} is {reservation.status}, but its payments are {states}"]
    if states.count("captured") + states.count("refunded") > 1:
        return [f"{reservation} was charged more than once: {states}"]
    return []
