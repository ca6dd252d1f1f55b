"""Sums that several reports need: exact money sums in SQL, and sums by month and by center."""

import datetime as dt
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from typing import Generic, Self, TypeVar

from django.db.models import BigIntegerField, Func, Sum, Value
from django.db.models.functions import Coalesce

from centers.models import Center
from reservations.reports.selection import ReportGroup, ReportSelection
from roombook.money import from_hundredths

ZERO = Decimal("0.00")


class SummableMixin:
    """Adds dataclasses field by field. Every field has a default of 0 or ``ZERO``."""

    __slots__ = ()

    @classmethod
    def from_row(cls, row: ReportGroup) -> Self:
        """Read the fields from a row of SQL sums, in which money is in hundredths.

        A field that is missing from the row is 0.
        """
        return cls(
            **{
                name: from_hundredths(row.get(name)) if is_money else row.get(name) or 0
                for name, is_money in cls._get_columns()
            }
        )

    def __add__(self, other: Self) -> Self:
        cls = type(self)
        return cls(
            **{name: getattr(self, name) + getattr(other, name) for name, _ in cls._get_columns()}
        )

    @classmethod
    @cache  # Reports add thousands of rows.
    def _get_columns(cls) -> tuple[tuple[str, bool], ...]:
        """The name of each field, and whether it is an amount of money."""
        return tuple(
            (field.name, isinstance(field.default, Decimal))
            for field in fields(cls)  # type: ignore[arg-type]
        )


KeyT = TypeVar("KeyT", bound=Hashable)
SumsT = TypeVar("SumsT", bound=SummableMixin)


def add_up(pairs: Iterable[tuple[KeyT, SumsT]]) -> dict[KeyT, SumsT]:
    """The sums of each key, of pairs of a key and sums."""
    by_key: dict[KeyT, SumsT] = {}
    for key, sums in pairs:
        by_key[key] = by_key[key] + sums if key in by_key else sums
    return by_key


@dataclass(frozen=True, slots=True)
class Breakdown(Generic[SumsT]):
    """Sums in total, by month and by center.

    ``by_month`` has every month of the period. ``by_center`` is None if there are too many centers
    to list each of them.
    """

    total: SumsT
    by_month: dict[dt.date, SumsT]
    by_center: dict[int, SumsT] | None
    center_names: dict[int, str]


def break_down(
    selection: ReportSelection, groups: Sequence[ReportGroup], sums_class: type[SumsT]
) -> Breakdown[SumsT]:
    summed = [(group["month"], group["center"], sums_class.from_row(group)) for group in groups]
    return break_down_sums(selection, summed, sums_class())


def break_down_sums(
    selection: ReportSelection, summed: Sequence[tuple[dt.date, int, SumsT]], zero: SumsT
) -> Breakdown[SumsT]:
    """Break down sums with their month and their center."""
    months = dict.fromkeys(selection.period.months(), zero)
    by_month = months | add_up((month, sums) for month, _, sums in summed)
    by_center = add_up((center, sums) for _, center, sums in summed)
    total = sum(by_month.values(), zero)
    if not selection.lists_centers:
        return Breakdown(total, by_month, None, {})
    names = Center.objects.filter(pk__in=by_center).values_list("pk", "name")
    return Breakdown(total, by_month, by_center, dict(names))


# --- SQL -----------------------------------------------------------------------------------------


class Hundredths(Func):
    """An amount of money in whole hundredths. SQLite would add up decimals as binary floats."""

    template = "CAST(ROUND(%(expressions)s * 100) AS BIGINT)"
    arity = 1
    output_field = BigIntegerField()


def sum_hundredths(column: str) -> Coalesce:
    """The sum of a money column."""
    return Coalesce(Sum(Hundredths(column)), Value(0), output_field=BigIntegerField())
