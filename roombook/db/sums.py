"""Sums over related rows, as expressions of a query."""

from decimal import Decimal
from typing import Any

from django.db.models import DecimalField, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce

MONEY_FIELD = DecimalField(max_digits=14, decimal_places=2)


def sum_of_related(
    rows: Any, column: str, *, by: str, to: str = "pk", is_integer: bool = False
) -> Coalesce:
    """Return an expression for the sum of a column over the related rows; 0 if there are none.

    `by` is the column of `rows` that refers to the row whose query has the expression, by its
    column `to`.
    """
    related = rows.filter(**{by: OuterRef(to)}).order_by().values(by)
    zero = Value(0) if is_integer else Value(Decimal(0), output_field=MONEY_FIELD)
    return Coalesce(Subquery(related.annotate(all=Sum(column)).values("all")), zero)
