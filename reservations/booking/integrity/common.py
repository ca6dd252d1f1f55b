"""Helpers for all integrity checks."""

import datetime as dt
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.db.models import F, OuterRef
from django.db.models.expressions import CombinedExpression

from roombook.money import ROUNDING_TOLERANCE

Rows = Iterable[Sequence[Any]]
# A check runs one query and describes each inconsistency that it finds.
Check = Callable[[dt.datetime], Iterator[str]]

# Payments take seconds, and reconcile_payments tries again every minute. A payment or refund that
# is not finished after this time is reported.
OVERDUE_AFTER = dt.timedelta(hours=1)


class CheckList(list[Check]):
    """The checks of a module, in their order."""

    def add(self, text: str) -> Callable[[Callable[[dt.datetime], Rows]], Check]:
        """Make a query for inconsistent rows a check; `text` describes one row by its columns."""

        def decorate(find_rows: Callable[[dt.datetime], Rows]) -> Check:
            @functools.wraps(find_rows)
            def check(now: dt.datetime) -> Iterator[str]:
                for row in find_rows(now):
                    yield text.format(*row)

            self.append(check)
            return check

        return decorate


def approximately(amount: F | OuterRef) -> tuple[CombinedExpression, CombinedExpression]:
    return amount - ROUNDING_TOLERANCE, amount + ROUNDING_TOLERANCE
