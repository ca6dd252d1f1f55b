"""How roombook's SQLite backend creates the file of a database."""

import os
import stat

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper as DjangoDatabaseWrapper

from roombook.db.sqlite.base import DatabaseWrapper

pytestmark = pytest.mark.django_db
OPTIONS = {"init_command": "PRAGMA journal_mode=WAL"}


def create_database(wrapper, file):
    """Write to a database, and return the modes of its files before it is closed."""
    connection = wrapper(
        {**connections.databases["default"], "NAME": str(file), "OPTIONS": OPTIONS}, "default"
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS secrets (token TEXT)")
        files = sorted(file.parent.glob("db.sqlite3*"))
        return [stat.S_IMODE(each.stat().st_mode) for each in files]
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_database_and_its_log_can_be_read_by_the_owner_only(tmp_path):
    assert create_database(DatabaseWrapper, tmp_path / "db.sqlite3") == [0o600] * 3
    # The control: without this backend, the files are public.
    (tmp_path / "django").mkdir()
    file = tmp_path / "django/db.sqlite3"
    assert create_database(DjangoDatabaseWrapper, file) == [0o644] * 3


def test_existing_database_keeps_its_mode(tmp_path):
    file = tmp_path / "db.sqlite3"
    file.touch(0o640)

    assert create_database(DatabaseWrapper, file) == [0o640] * 3
