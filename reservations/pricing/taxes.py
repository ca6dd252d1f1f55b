"""The taxes of a bill: added to its prices, or contained in them (B12.4). Pure functions.

Each line has the label of its tax, such as "Tax, 10%". A bill has one tax, unless the center has
changed its rate before an extra was added. Each tax is rounded once, on the sum of its lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from reservations.models import LineItemType
from roombook import money


class TaxedLine(Protocol):
    """A line of a bill. That of the tax itself has what it adds as its total."""

    @property
    def type(self) -> str: ...
    @property
    def total(self) -> Decimal: ...
    @property
    def contained_tax(self) -> Decimal: ...
    @property
    def tax_label(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TaxedSum:
    """The sum of the lines with one tax: what of it is tax, and what is added to it.

    The label is empty without a tax.
    """

    label: str
    base: Decimal = money.ZERO
    contained: Decimal = money.ZERO
    added: Decimal = money.ZERO

    @property
    def tax(self) -> Decimal:
        return self.contained + self.added

    @property
    def gross(self) -> Decimal:
        return self.base + self.added

    def change(self, amount: Decimal) -> "TaxedSum":
        """Return the sum with the amount added to its base, and its tax in proportion."""
        part = (self.base + amount) / self.base if self.base else money.ZERO
        return replace(
            self,
            base=self.base + amount,
            contained=money.round_amount(self.contained * part),
            added=money.round_amount(self.added * part),
        )


def calculate_tax(base: Decimal, tax_rate: Decimal, *, is_contained: bool) -> TaxedSum:
    """Return the sum with its tax at a rate in percent."""
    if not tax_rate:
        return TaxedSum("", base)
    percent = format_percent(tax_rate)
    if is_contained:
        contained = money.round_amount(base * tax_rate / (100 + tax_rate))
        return TaxedSum(f"Includes {percent}% tax", base, contained)
    return TaxedSum(f"Tax, {percent}%", base, added=money.round_amount(base * tax_rate / 100))


def sum_by_tax(lines: Iterable[TaxedLine]) -> dict[str, TaxedSum]:
    """Return the sums of a bill by the labels of their taxes, in the order of the lines."""
    sums: dict[str, TaxedSum] = {}
    for line in lines:
        found = sums.get(line.tax_label, TaxedSum(line.tax_label))
        if line.type == LineItemType.TAX:
            found = replace(found, added=found.added + line.total)
        else:
            found = replace(
                found,
                base=found.base + line.total,
                contained=found.contained + line.contained_tax,
            )
        sums[line.tax_label] = found
    return sums


def split_amount(amount: Decimal, weights: Iterable[Decimal]) -> list[Decimal]:
    """Split an amount by weights, rounded as a running sum, so that the parts add up to it."""
    weights = list(weights)
    whole, so_far, parts, given = sum(weights), money.ZERO, [], money.ZERO
    for weight in weights:
        so_far += weight
        part = money.round_amount(amount * so_far / whole) - given if whole else money.ZERO
        given += part
        parts.append(part)
    return parts


def format_percent(rate: Decimal) -> str:
    """Format a percentage without trailing zeros: `8.625`, `10`."""
    return f"{rate.normalize():f}"
