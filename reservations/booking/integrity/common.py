"""What all checks share."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from django.db.models import DecimalField, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce

# A check asks the database one question; each thing that it finds names its rows.
Check = Callable[[dt.datetime], Iterator[str]]

MONEY_FIELD = DecimalField(max_digits=14, decimal_places=2)
# SQLite adds up in binary: sums of money are compared to within less than any coin.
ROUNDING_TOLERANCE = Decimal("0.0001")
# What is under way takes seconds, and reconcile_payments tries it again every minute: what has not
# come to its end for longer than this has been forgotten.
OVERDUE_AFTER = dt.timedelta(hours=1)


def approximately(column: str) -> tuple[Any, Any]:
    return F(column) - ROUNDING_TOLERANCE, F(column) + ROUNDING_TOLERANCE


def sum_of_related(
    rows: Any, column: str, *, by: str = "reservation", whole: bool = False
) -> Coalesce:
    """The sum of a column over the rows that belong to each, 0 where there are none."""
    mine = rows.filter(**{by: OuterRef("pk")}).order_by().values(by)
    zero = Value(0) if whole else Value(Decimal(0), output_field=MONEY_FIELD)
    return Coalesce(Subquery(mine.annotate(all=Sum(column)).values("all")), zero)
