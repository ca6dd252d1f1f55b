"""Checks that the stored data agrees with itself: every promise that can be checked afterwards.

Each check is one query that returns no rows if all is well, so it is fast for millions of
reservations. A finding names its rows. Nothing is changed.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from reservations.booking.integrity import benefits, money, rooms


@dataclass(frozen=True, slots=True)
class Finding:
    """A contradiction: which check found it, and in which rows."""

    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {self.detail}"


CHECKS = (*rooms.CHECKS, *money.CHECKS, *benefits.CHECKS)


def find_problems(*, now: dt.datetime) -> Iterator[Finding]:
    """Run all checks and yield what they find."""
    for check in CHECKS:
        for detail in check(now):
            yield Finding(check.__name__.replace("_", " "), detail)
