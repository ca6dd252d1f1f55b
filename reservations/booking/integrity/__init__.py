"""Whether the books agree with each other: every promise that can be checked after the fact.

Each check is one question to the database that finds nothing when all is well, so that a million
reservations are no trouble. A finding names its rows; nothing is changed.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from reservations.booking.integrity import benefits, money, rooms


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that cannot be: which check says so, and of which rows."""

    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {self.detail}"


CHECKS = (*rooms.CHECKS, *money.CHECKS, *benefits.CHECKS)


def find_problems(*, now: dt.datetime) -> Iterator[Finding]:
    """Everything that is wrong, check by check."""
    for check in CHECKS:
        for detail in check(now):
            yield Finding(check.__name__.replace("_", " "), detail)
