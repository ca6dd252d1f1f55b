"""What customers still have to pay for their reservations."""

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Sum

from payments.models import LedgerLine, Payment
from reservations.models.status import Status
from roombook.money import from_hundredths

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from reservations.models import Reservation

NOT_BOOKED = (Status.NEW, Status.PROCESSING, Status.PENDING)


def get_unpaid_amounts(rows: "QuerySet[Reservation]") -> dict[int, Decimal]:
    """Return what customers owe by the ledger, if anything; of what is not booked, the price.

    What is authorized on a card is not unpaid. Three queries, however many reservations there are.
    """
    rows = rows.order_by()
    lines = LedgerLine.objects.filter(reservation__in=rows).order_by().values_list("reservation")
    authorized = Payment.objects.authorized().filter(reservation__in=rows).order_by()
    prices = rows.filter(status__in=NOT_BOOKED).values_list("pk", "total_cost")
    balances = defaultdict[int, Decimal](Decimal, prices)
    for pk, amount in lines.annotate(Sum("receivables")):
        balances[pk] += from_hundredths(amount)
    for pk, amount in authorized.values_list("reservation").annotate(Sum("amount")):
        balances[pk] -= amount
    return {pk: balance for pk, balance in balances.items() if balance > 0}
