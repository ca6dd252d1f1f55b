"""Helpers for all integrity checks."""

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet
from django.db.models.expressions import CombinedExpression

from accounts.personal_data import get_lifetime
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.money import ROUNDING_TOLERANCE

EARLIEST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# A queryset, or rows with their values in the order of the text.
Rows = Iterable[Any]
# A check describes each inconsistency that it finds.
Check = Callable[[dt.datetime], Iterator[str]]

# Payments take seconds, and reconcile_payments tries again every minute. A payment or refund that
# is not finished after this time is reported.
OVERDUE_AFTER = dt.timedelta(hours=1)


class CheckList(list[Check]):
    """The checks of a module, in their order."""

    def add(self, text: str) -> Callable[[Callable[[dt.datetime], Rows]], Check]:
        """Make a function that finds inconsistent rows a check; `text` describes one of them.

        The text names the columns of a queryset. Other rows have values in the order of the text.
        """
        columns = re.findall(r"{(\w+)", text)
        template = re.sub(r"{\w+", "{", text)

        def decorate(find_rows: Callable[[dt.datetime], Rows]) -> Check:
            @functools.wraps(find_rows)
            def check(now: dt.datetime) -> Iterator[str]:
                rows = find_rows(now)
                for row in rows.values_list(*columns) if isinstance(rows, QuerySet) else rows:
                    yield template.format(*map(_describe, row))

            self.append(check)
            return check

        return decorate


def _describe(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, dt.datetime) else value


def get_history(model: type[Model], reference: str = "pk") -> QuerySet[AuditEntry]:
    """Return the changes in the audit log of the row to which an outer query refers."""
    content_type = ContentType.objects.get_for_model(model)
    return AuditEntry.objects.filter(
        content_type=content_type, object_id=OuterRef(reference), action=AuditAction.UPDATE
    )


def get_kept_since(setting: str, now: dt.datetime) -> dt.datetime:
    """Return since when rows are kept that are deleted some days after they were made."""
    lifetime = get_lifetime(setting)
    # A day less: the job that deletes them does not run every minute.
    return now - lifetime + dt.timedelta(days=1) if lifetime else EARLIEST


def may_be_changed(
    now: dt.datetime, model: type[Model], reference: str, *fields: str, made: str = "created_at"
) -> Q:
    """Whether staff have changed a field of the row since the booking was made, or can have.

    Nobody knows that of bookings that are older than the audit log.
    """
    later = get_history(model, reference).filter(timestamp__gte=OuterRef(made))
    return Q(Exists(later.filter(changes__has_any_keys=list(fields)))) | Q(
        **{f"{made}__lte": get_kept_since("AUDIT_LOG_DAYS", now)}
    )


def approximately(
    amount: F | OuterRef | CombinedExpression,
) -> tuple[CombinedExpression, CombinedExpression]:
    """Return the range around an amount that counts as equal to it, as SQLite sums floats."""
    return amount - ROUNDING_TOLERANCE, amount + ROUNDING_TOLERANCE
