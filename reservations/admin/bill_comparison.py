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
    """The old and the new version of a line; None if the bill has no such line."""

    old: ComparableLine | None
    new: ComparableLine | None

    @property
    def old_amount(self) -> str:
        return money.format_amount(self.old.total) if self.old else ""

    @property
    def new_amount(self) -> str:
        return money.format_amount(self.new.total) if self.new else ""

    @property
    def description(self) -> str:
        line = self.new or self.old
        return line.description if line else ""

    @property
    def old_description(self) -> str:
        """The description of the old line if it is different."""
        if self.old and self.new and self.old.description != self.new.description:
            return self.old.description
        return ""

    @property
    def change(self) -> str:
        old = self.old.total if self.old else money.ZERO
        new = self.new.total if self.new else money.ZERO
        return format_signed(new - old)


def format_signed(amount: Decimal) -> str:
    """``+$5.00``, ``-$5.00``, or "" for 0."""
    if not amount:
        return ""
    return f"+{money.format_amount(amount)}" if amount > 0 else money.format_amount(amount)


def compare_bills(
    old: Iterable[ComparableLine], new: Iterable[ComparableLine]
) -> list[ComparedLine]:
    """Match each new line with the old one that it replaces. Removed lines come last."""
    unmatched: dict[tuple[object, ...], list[ComparableLine]] = {}
    for line in old:
        unmatched.setdefault(_get_key(line), []).append(line)
    compared = []
    for line in new:
        candidates = unmatched.get(_get_key(line))
        compared.append(ComparedLine(candidates.pop(0) if candidates else None, line))
    removed = (ComparedLine(line, None) for lines in unmatched.values() for line in lines)
    return [*compared, *removed]


def _get_key(line: ComparableLine) -> tuple[object, ...]:
    """What the old and the new version of a line have in common."""
    if line.type == LineItemType.ADJUSTMENT:
        return (line.type, line.description)
    service, allowance = (getattr(line, name, None) for name in ("service_id", "allowance_id"))
    return (str(line.type), service, allowance)
