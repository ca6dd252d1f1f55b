"""Database constraints that prevent two reservations from holding a room at the same time.

Between two reservations of a room lies at least the larger of both turnaround times, as in
`ReservationQuerySet.conflicting`. A booking and the slot that is held for its change are no two
reservations. PostgreSQL has two exclusion constraints for that: one for the
turnaround after the earlier reservation, and one for the turnaround before the later one. SQLite
has two triggers with the same rule. Some migrations make Django rebuild a SQLite table, which drops
its triggers. So they are created again after every migrate, and a system check reports missing ones
(apps.py).
"""

from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField
from django.contrib.postgres.operations import BtreeGistExtension
from django.db import DatabaseError, connections
from django.db.models import Func

# Every name begins with the first one, by which errors are recognized.
NO_OVERLAP = "reservation_holders_never_overlap"
NO_OVERLAP_BEFORE = f"{NO_OVERLAP}_turnaround_before"


class BtreeGist(BtreeGistExtension):
    """Creates btree_gist on PostgreSQL only. Reversing the migration does not remove it."""

    def database_backwards(self, *args: object) -> None:
        """Do nothing, because another application in the same database can use the extension."""


class TimestampRange(Func):
    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class PostgresExclusion(ExclusionConstraint):
    """An exclusion constraint that does not exist on other databases.

    Migrations refer to this class, so it must not be moved or renamed.
    """

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return None
        return super().constraint_sql(model, schema_editor)

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return None
        return super().create_sql(model, schema_editor)

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        if schema_editor.connection.vendor != "postgresql":
            return None
        return super().remove_sql(model, schema_editor)

    def validate(self, *args: object, **kwargs: object) -> None:
        """Do nothing, because forms get better messages from the availability evaluator."""


TABLE = "reservations_reservation"
_OVERLAP = f"""
    SELECT RAISE(ABORT, '{NO_OVERLAP}') FROM {TABLE} AS held
    WHERE held.room_id = NEW.room_id AND held.holds_slot
      AND COALESCE(held.holds_for_id, held.id) <> COALESCE(NEW.holds_for_id, NEW.id)
      AND (held.start < NEW.occupied_until AND NEW.start < held.occupied_until
        OR held.occupied_from < NEW."end" AND NEW.occupied_from < held."end")
"""
TRIGGERS = {
    f"{NO_OVERLAP}_insert": f"""
        CREATE TRIGGER {NO_OVERLAP}_insert AFTER INSERT ON {TABLE} WHEN NEW.holds_slot
        BEGIN {_OVERLAP}; END""",
    f"{NO_OVERLAP}_update": f"""
        CREATE TRIGGER {NO_OVERLAP}_update
        AFTER UPDATE OF room_id, start, "end", occupied_from, occupied_until, holds_slot
        ON {TABLE} WHEN NEW.holds_slot
        BEGIN {_OVERLAP}; END""",
}


def create_triggers(using: str) -> None:
    """Create or replace the triggers on SQLite. Does nothing on other databases."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        if TABLE not in connection.introspection.table_names(cursor):
            return
        for name, sql in TRIGGERS.items():
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            cursor.execute(sql)


def get_missing_triggers(using: str) -> list[str]:
    """Return the triggers that a migrated SQLite database lacks."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return []
    with connection.cursor() as cursor:
        if TABLE not in connection.introspection.table_names(cursor):
            return []
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        present = {name for (name,) in cursor.fetchall()}
    return sorted(set(TRIGGERS) - present)


def is_overlap_error(error: DatabaseError) -> bool:
    """Return whether the database refused a second reservation that holds the same room."""
    return NO_OVERLAP in str(error)
