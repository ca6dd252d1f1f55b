"""Wrong settings stop the start with one line that names the setting, without a traceback.

manage.py and wsgi.py call these functions before anything else happens.
"""

import os
import sys
from collections.abc import Callable

from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created
from django.db.migrations.executor import MigrationExecutor


def load_settings() -> None:
    """Read all settings. A wrong one ends the process."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
    try:
        settings.INSTALLED_APPS  # noqa: B018 (the first access reads the settings)
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")


def require_valid_settings() -> None:
    """Run the checks of roombook/checks.py. An error ends the process, one line for each."""
    errors = [problem for problem in run_checks(tags=["roombook"]) if problem.is_serious()]
    if errors:
        lines = [f"Error: {each.msg} {each.hint or ''} ({each.id})" for each in errors]
        sys.exit("\n".join(lines))


def require_usable_database() -> None:
    """Connect once: missing migrations or limits of sessions end the process with one line.

    A database that cannot be reached does not stop the start.
    """
    try:
        missing = find_missing_migrations()
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")
    except OperationalError:
        return
    finally:
        # Forked workers must not share it.
        connection.close()
    if missing:
        count, first = len(missing), missing[0]
        sys.exit(f"Error: Run manage.py migrate: the database lacks {count} migrations ({first}).")


def find_missing_migrations() -> list[str]:
    """The migrations of this version that the database lacks."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def run_command(command: Callable[[], None]) -> None:
    """Run a command. A wrong setting or an unreachable database ends the process with one line."""
    connected = []

    def mark_connected(**_: object) -> None:
        connected.append(True)

    connection_created.connect(mark_connected)
    try:
        command()
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")
    except OperationalError as error:
        if connected:
            raise
        name = connection.settings_dict["NAME"]
        reason = str(error).strip().splitlines()[0]
        sys.exit(f"Error: DATABASE_URL: the database {str(name)!r} cannot be opened: {reason}")
    finally:
        connection_created.disconnect(mark_connected)
