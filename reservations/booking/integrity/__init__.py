"""Checks that the stored data is consistent.

Most checks are one query that returns only inconsistent rows, so they are fast for millions of
reservations. The one that takes longest is `ledger_off_the_facts`: it calculates the accounts of
every reservation again. A finding names its rows. The checks change nothing.
"""

import datetime as dt
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reservations.booking.integrity import benefits, bookings, database, money
from reservations.booking.integrity.common import Check

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """An inconsistency: the check that found it, and the rows that it affects."""

    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {self.detail}"


CHECKS = (*bookings.CHECKS, *money.CHECKS, *benefits.CHECKS, *database.CHECKS)


def find_problems(*, now: dt.datetime, checks: Collection[Check] = CHECKS) -> Iterator[Finding]:
    """Run the checks and yield their findings. One that cannot be run is a finding, too."""
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            for detail in check(now):
                yield Finding(name, detail)
        except Exception as error:
            logger.exception("The check of %s has failed.", name)
            yield Finding(name, f"it could not be checked: {error!r}")
