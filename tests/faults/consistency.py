"""Checks that our data is consistent, with itself and with the gateway's."""

import io
from collections import Counter, defaultdict
from decimal import Decimal

from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentPurpose, PaymentState
from payments.models.refunds import COMPLETED_REFUND_STATES
from reservations.booking import integrity
from reservations.models import Reservation
from reservations.models.status import Status

PAID = {Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW}


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
    """All inconsistencies once everything is resolved: of our data, and with the gateway's.

    Cancelled reservations are expected to be fully refunded.
    """
    found = [str(finding) for finding in integrity.find_problems(now=timezone.now())]
    at_gateway = {row.key: row for row in SandboxPayment.objects.all()}
    paid: dict[int, Decimal] = defaultdict(Decimal)
    charged: Counter[int] = Counter()
    for payment in Payment.objects.prefetch_related("refunds"):
        returned = payment.refunds.filter(state__in=COMPLETED_REFUND_STATES)
        done = sum(each.amount for each in returned)
        if payment.gateway in MANUAL_GATEWAYS:
            paid[payment.reservation_id] += payment.amount - done
            continue
        row = at_gateway.pop(payment.key, None)
        name = f"payment {payment.pk} of reservation {payment.reservation_id}"
        state = row.state if row else "unknown"
        if payment.state != state or payment.state == PaymentState.STARTED:
            found.append(f"{name} is {payment.state} here and {state} at the gateway")
        if payment.refunds.exclude(pk__in=returned).exists():
            found.append(f"{name} has a refund that is not done")
        if row is None:
            continue
        if row.captures:
            paid[payment.reservation_id] += row.amount - row.refunded
            charged[payment.reservation_id] += payment.purpose == PaymentPurpose.BOOKING
        if row.captures > 1:
            found.append(f"{name} was captured {row.captures} times")
        if done != row.refunded:
            found.append(f"{name}: {done} refunded here, {row.refunded} at the gateway")
    for row in at_gateway.values():
        if row.state != "voided":
            found.append(f"the gateway has {row.key} as {row.state}, but we do not know it")
    for reservation in Reservation.objects.all():
        if charged[reservation.pk] > 1:
            found.append(f"{reservation} was charged more than once")
        price = reservation.total_cost if reservation.status in PAID else 0
        if paid[reservation.pk] != price:
            found.append(f"{reservation} costs {price}, and {paid[reservation.pk]} is paid")
        if reservation.status == Status.PROCESSING:
            found.append(f"{reservation} is still Processing")
    return found
