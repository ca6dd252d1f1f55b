"""Two bills side by side: what a change makes of each line."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from reservations.models import LineItemType
from roombook import money


class ComparableLine(Protocol):
    """A line of a bill, written down or only thought of."""

    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def total(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line as it is and as it would be; None where there is none."""

    old: ComparableLine | None
    new: ComparableLine | None

    @property
    def was(self) -> str:
        return money.format_amount(self.old.total) if self.old else ""

    @property
    def becomes(self) -> str:
        return money.format_amount(self.new.total) if self.new else ""

    @property
    def description(self) -> str:
        line = self.new or self.old
        return line.description if line else ""

    @property
    def was_called(self) -> str:
        """What the line said before, where it says something else now."""
        if self.old and self.new and self.old.description != self.new.description:
            return self.old.description
        return ""

    @property
    def difference(self) -> Decimal:
        old = self.old.total if self.old else money.ZERO
        new = self.new.total if self.new else money.ZERO
        return new - old

    @property
    def change(self) -> str:
        return format_signed(self.difference)


def format_signed(amount: Decimal) -> str:
    """`+$5.00`, `-$5.00`, or nothing."""
    if not amount:
        return ""
    return f"+{money.format_amount(amount)}" if amount > 0 else money.format_amount(amount)


def compare_bills(
    old: Iterable[ComparableLine], new: Iterable[ComparableLine]
) -> list[ComparedLine]:
    """Each new line beside the old one that it takes the place of; what is gone comes last."""
    left: dict[tuple[object, ...], list[ComparableLine]] = {}
    for line in old:
        left.setdefault(_get_line_key(line), []).append(line)
    rows = []
    for line in new:
        same = left.get(_get_line_key(line))
        rows.append(ComparedLine(same.pop(0) if same else None, line))
    return rows + [ComparedLine(line, None) for lines in left.values() for line in lines]


def _get_line_key(line: ComparableLine) -> tuple[object, ...]:
    what = (getattr(line, "service_id", None), getattr(line, "allowance_id", None))
    if line.type == LineItemType.ADJUSTMENT:
        return (line.type, line.description)
    return (str(line.type), *what)
