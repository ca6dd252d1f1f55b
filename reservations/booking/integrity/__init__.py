"""Checks that the stored data is consistent.

Each check is one query that returns only inconsistent rows, so it is fast for millions of
reservations. A finding names its rows. The checks change nothing.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from reservations.booking.integrity import benefits, database, ledger, money, receipts, rooms


@dataclass(frozen=True, slots=True)
class Finding:
    """An inconsistency: the check that found it, and the rows that it affects."""

    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {self.detail}"


CHECKS = (
    *(*rooms.CHECKS, *money.CHECKS, *ledger.CHECKS, *benefits.CHECKS, *receipts.CHECKS),
    *database.CHECKS,
)


def find_problems(*, now: dt.datetime) -> Iterator[Finding]:
    """Run all checks and yield their findings."""
    for check in CHECKS:
        for detail in check(now):
            yield Finding(check.__name__.replace("_", " "), detail)
