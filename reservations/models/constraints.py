"""Two bookings never share a room: the database's own word, on PostgreSQL and on SQLite.

PostgreSQL has an exclusion constraint. SQLite has none, so two triggers say the same; Django
rebuilds SQLite tables in some migrations and loses their triggers, so they are laid again after
every migrate (see apps.py), and a system check misses them if they are gone.
"""

from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField
from django.contrib.postgres.operations import BtreeGistExtension
from django.db import DatabaseError, connections
from django.db.models import Func

NO_OVERLAP = "reservation_holders_never_overlap"


class BtreeGist(BtreeGistExtension):
    """btree_gist on PostgreSQL, nothing elsewhere; stays when the migration is taken back."""

    def database_backwards(self, *args: Any) -> None:
        """Another application of the same database may use it by then."""


class TimestampRange(Func):
    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class PostgresExclusion(ExclusionConstraint):
    """An exclusion constraint that is simply absent on other databases.

    Named in migrations: never move or rename this class.
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

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """Leave it to the evaluator, which names the rival; the constraint is the last line."""


TABLE = "reservations_reservation"
_OVERLAP = f"""
    SELECT RAISE(ABORT, '{NO_OVERLAP}') FROM {TABLE} AS held
    WHERE held.room_id = NEW.room_id AND held.id <> NEW.id AND held.holds_slot
      AND held.start < NEW.occupied_until AND NEW.start < held.occupied_until
"""
TRIGGERS = {
    f"{NO_OVERLAP}_insert": f"""
        CREATE TRIGGER {NO_OVERLAP}_insert AFTER INSERT ON {TABLE} WHEN NEW.holds_slot
        BEGIN {_OVERLAP}; END""",
    f"{NO_OVERLAP}_update": f"""
        CREATE TRIGGER {NO_OVERLAP}_update
        AFTER UPDATE OF room_id, start, occupied_until, holds_slot ON {TABLE} WHEN NEW.holds_slot
        BEGIN {_OVERLAP}; END""",
}


def create_triggers(using: str) -> None:
    """Make the SQLite triggers anew; nothing on other databases."""
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
    """Which triggers a migrated SQLite database lacks."""
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
    """Whether the database refused a second holder of one room."""
    return NO_OVERLAP in str(error)
