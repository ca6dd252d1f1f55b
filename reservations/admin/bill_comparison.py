"""Compares two bills line by line."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from reservations.models import LineItemType
from roombook import money


class ComparableLine(Protocol):
    """A line of a bill, stored or only calculated."""

    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def total(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line as the page shows it. The amount is "" in the bill that has no such line.

    ``old_description`` is "" if the description stays the same.
    """

    description: str
    old_description: str
    old_amount: str
    new_amount: str
    change: str


@dataclass(frozen=True, slots=True)
class BillComparison:
    lines: list[ComparedLine]
    old_total: str
    new_total: str
    change: str


class ChangedBill(Protocol):
    """The bill of a reservation before and after a change."""

    @property
    def old_lines(self) -> Iterable[ComparableLine]: ...
    @property
    def new_lines(self) -> Iterable[ComparableLine]: ...
    @property
    def old_total(self) -> Decimal: ...
    @property
    def new_total(self) -> Decimal: ...


def compare_bills(bill: ChangedBill) -> BillComparison:
    """Match each new line with the old one that it replaces. Removed lines come last."""
    unmatched: dict[tuple[object, ...], list[ComparableLine]] = {}
    for line in bill.old_lines:
        unmatched.setdefault(_get_key(line), []).append(line)
    lines = []
    for line in bill.new_lines:
        candidates = unmatched.get(_get_key(line))
        lines.append(_compare(candidates.pop(0) if candidates else None, line))
    lines += [_compare(line, None) for removed in unmatched.values() for line in removed]
    return BillComparison(
        lines,
        money.format_amount(bill.old_total),
        money.format_amount(bill.new_total),
        _format_change(bill.new_total - bill.old_total),
    )


def _get_key(line: ComparableLine) -> tuple[object, ...]:
    """What the old and the new version of a line have in common."""
    if line.type == LineItemType.ADJUSTMENT:
        return (line.type, line.description)
    service, allowance = (getattr(line, name, None) for name in ("service_id", "allowance_id"))
    return (str(line.type), service, allowance)


def _compare(old: ComparableLine | None, new: ComparableLine | None) -> ComparedLine:
    old_text, new_text = (line.description if line else "" for line in (old, new))
    old_amount, new_amount = (line.total if line else money.ZERO for line in (old, new))
    return ComparedLine(
        description=new_text or old_text,
        old_description=old_text if new and old_text != new_text else "",
        old_amount=money.format_amount(old_amount) if old else "",
        new_amount=money.format_amount(new_amount) if new else "",
        change=_format_change(new_amount - old_amount),
    )


def _format_change(amount: Decimal) -> str:
    """``+$5.00``, ``-$5.00``, or "" for 0."""
    if not amount:
        return ""
    return f"+{money.format_amount(amount)}" if amount > 0 else money.format_amount(amount)
