"""Sums of money as the database makes them, exact on both: it adds up whole hundredths."""

from dataclasses import fields
from decimal import Decimal
from typing import Any, Self

from django.db.models import BigIntegerField, Func, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from roombook.money import DECIMAL_PLACES


class SummableMixin:
    """A dataclass that is added field by field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        names = (each.name for each in fields(self))  # type: ignore[arg-type]
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Hundredths(Func):
    """An amount as a whole number of hundredths. SQLite would add up amounts in binary."""

    template = "CAST(ROUND(%(expressions)s * 100) AS BIGINT)"
    arity = 1
    output_field = BigIntegerField()


class ProportionalShare(Func):
    """Of hundredths: the amount times part by whole, half-up; nothing of a whole of nothing."""

    arity = 3  # amount, part, whole
    output_field = BigIntegerField()

    def __init__(self, amount: Any, part: Any, whole: Any) -> None:
        super().__init__(amount, part, whole)

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> Any:
        parts, params = [], []
        for each in self.source_expressions:
            sql, more = compiler.compile(each)
            parts.append(sql)
            params += more
        amount, part, whole = parts
        # Both are wider than a whole number here: the product of two may be very long.
        wide = "NUMERIC" if connection.vendor == "postgresql" else "REAL"
        return (
            f"CAST(COALESCE(ROUND(CAST({amount} AS {wide}) * {part} / NULLIF({whole}, 0)), 0)"
            " AS BIGINT)",
            params,
        )


def sum_hundredths(column: str) -> Coalesce:
    """The sum of a column of money."""
    return Coalesce(Sum(Hundredths(column)), Value(0), output_field=BigIntegerField())


def to_decimal(hundredths: Any) -> Decimal:
    """Hundredths as money."""
    return Decimal(int(hundredths or 0)).scaleb(-DECIMAL_PLACES)


def subquery_sum(rows: QuerySet[Any], column: str, *, by: str) -> Coalesce:
    """The hundredths of the rows that belong to each reservation."""
    mine = rows.filter(**{by: OuterRef("pk")}).order_by().values(by)
    total = Subquery(mine.annotate(all=Sum(Hundredths(column))).values("all"))
    return Coalesce(total, Value(0), output_field=BigIntegerField())
