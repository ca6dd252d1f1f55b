"""Checks that the database still has what guards the data."""

import datetime as dt
import re

from django.apps import apps
from django.db import connection

from reservations.booking.integrity.common import CheckList, Rows
from reservations.models.constraints import TRIGGERS, PostgresExclusion

CHECKS = CheckList()

# Of the migrations that keep the ledger and receipts as they are.
KEPT = {
    "ledger_line_never_changes",
    "receipt_never_changes",
    "receipt_is_never_deleted",
    "receipt_entry_never_changes",
    "receipt_entry_is_never_deleted",
    "receipt_series_never_falls",
}
KEPT_ON_SQLITE = {"ledger_line_is_never_deleted", "ledger_line_is_never_replaced", *TRIGGERS}

# The constraints, indexes and triggers of the database. SQLite has constraints in their tables.
NAMES = {
    "postgresql": "SELECT conname FROM pg_constraint UNION SELECT relname FROM pg_class UNION"
    " SELECT tgname FROM pg_trigger WHERE tgenabled <> 'D'",
    "sqlite": "SELECT name || ' ' || sql FROM sqlite_master WHERE sql IS NOT NULL",
}


@CHECKS.add("the database lacks {}")
def missing_guards(now: dt.datetime) -> Rows:
    """Find constraints, indexes and triggers that somebody has dropped."""
    is_sqlite = connection.vendor == "sqlite"
    expected = KEPT | (KEPT_ON_SQLITE if is_sqlite else set())
    for model in apps.get_models():
        for guard in (*model._meta.constraints, *model._meta.indexes):
            if not (is_sqlite and isinstance(guard, PostgresExclusion)):
                expected.add(guard.name)
    with connection.cursor() as cursor:
        cursor.execute(NAMES[connection.vendor])
        found = set(re.findall(r"\w+", " ".join(text for (text,) in cursor.fetchall())))
    return [(name,) for name in sorted(expected - found)]
