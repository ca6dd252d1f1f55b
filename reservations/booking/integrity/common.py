"""Helpers for all integrity checks."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from django.db.models import DecimalField, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from roombook.money import ROUNDING_TOLERANCE

# A check runs one query and describes each inconsistency that it finds.
Check = Callable[[dt.datetime], Iterator[str]]

MONEY_FIELD = DecimalField(max_digits=14, decimal_places=2)
# Payments take seconds, and reconcile_payments tries again every minute. A payment or refund that
# is not finished after this time is reported.
OVERDUE_AFTER = dt.timedelta(hours=1)


def approximately(column: str) -> tuple[Any, Any]:
    return F(column) - ROUNDING_TOLERANCE, F(column) + ROUNDING_TOLERANCE


def sum_of_related(
    rows: Any, column: str, *, by: str = "reservation", is_integer: bool = False
) -> Coalesce:
    """Return an expression for the sum of a column over the related rows; 0 if there are none."""
    related = rows.filter(**{by: OuterRef("pk")}).order_by().values(by)
    zero = Value(0) if is_integer else Value(Decimal(0), output_field=MONEY_FIELD)
    return Coalesce(Subquery(related.annotate(all=Sum(column)).values("all")), zero)
