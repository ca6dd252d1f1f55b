"""What customers still have to pay for their reservations."""

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Sum

from payments.models import COMPLETED_REFUND_STATES, Payment, Refund
from reservations.models.reservation import PAID_STATES

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from reservations.models import Reservation


def get_unpaid_amounts(rows: "QuerySet[Reservation]") -> dict[int, Decimal]:
    """Return the part of each total that is neither paid nor authorized, if there is any.

    A payment on account counts once its money has come in. Three queries, however many
    reservations there are.
    """
    balances = dict(rows.order_by().values_list("pk", "total_cost"))
    payments = Payment.objects.filter(reservation__in=rows, state__in=sorted(PAID_STATES)).exclude(
        pk__in=Payment.objects.receivable()
    )
    refunds = Refund.objects.filter(payment__in=payments, state__in=COMPLETED_REFUND_STATES)
    paid = payments.order_by().values_list("reservation").annotate(Sum("amount"))
    refunded = refunds.order_by().values_list("payment__reservation").annotate(Sum("amount"))
    for pk, amount in paid:
        balances[pk] -= amount
    for pk, amount in refunded:
        balances[pk] += amount
    return {pk: balance for pk, balance in balances.items() if balance > 0}
