"""The service behind PgBouncer in transaction mode, which passes no session settings on.

The limits of sessions must be set for the role: without them, the service does not start.
"""

import itertools
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import connections

from tests.faults.database import Database, DatabaseStore, postgres_database
from tests.faults.pgbouncer import PROGRAM, PgBouncer
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG, SIZE
from tests.faults.test_storms import storm
from tests.test_startup import run

pytestmark = pytest.mark.postgres
needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed")

PASSWORD = "tests-only"
RESTARTS = 6
IDLE_LIMIT = "idle_in_transaction_session_timeout = '60s'"
START_SERVICE = ("-c", "import roombook.wsgi")


@dataclass(frozen=True, slots=True)
class RoleDatabase:
    """A database, and a role of its own without any limits."""

    database: Database
    role: str

    def at(self, port: int | None = None) -> Database:
        given = self.database.settings
        host = given["HOST"] if port is None else "127.0.0.1"
        return postgres_database(host, port or given["PORT"], self.role, given["NAME"], PASSWORD)

    def execute(self, *statements: str) -> None:
        with self.database.open(), connections["default"].cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture
def role_database(store: DatabaseStore, django_db_blocker) -> Iterator[RoleDatabase]:
    role = f"pooled_{uuid.uuid4().hex}"
    with django_db_blocker.unblock():
        made = RoleDatabase(store.new(), role)
        made.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        yield made
        made.execute(f"DROP ROLE {role}")


@pytest.fixture
def pooler(role_database: RoleDatabase) -> Iterator[PgBouncer]:
    given = role_database.database.settings
    running = PgBouncer(
        host=given["HOST"],
        server_port=given["PORT"],
        role=role_database.role,
        password=PASSWORD,
    )
    yield running
    running.stop()


def test_service_with_pgbouncer_starts_only_if_the_role_has_the_limits(role_database):
    environment = {"PGBOUNCER": "true", "DATABASE_URL": role_database.at().url}

    refused = run(*START_SERVICE, **environment)

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: PGBOUNCER: ")
    assert len(refused.stderr.splitlines()) == 1
    assert PASSWORD not in refused.stderr
    statements = re.findall(r"ALTER ROLE [^;]*;", refused.stderr)
    assert len(statements) == 3
    # The message contains the remedy.
    role_database.execute(*statements)
    assert run(*START_SERVICE, **environment).returncode == 0
    # A command needs the limits too, and other limits than those of the role are refused.
    other = run("manage.py", "erase_expired", STATEMENT_TIMEOUT="5", **environment)
    assert other.returncode == 1
    assert "statement_timeout = '5s'" in other.stderr


def test_service_with_pgbouncer_starts_while_the_database_is_away():
    url = "postgres://rooms:hidden@127.0.0.1:1/rooms"

    assert run(*START_SERVICE, PGBOUNCER="true", DATABASE_URL=url).returncode == 0


@needs_pgbouncer
@pytest.mark.skipif(not LONG, reason="bookings during restarts: make faults")
def test_restarts_of_pgbouncer_lose_nothing(role_database, pooler, tmp_path):
    for limit in ("lock_timeout = '4s'", "statement_timeout = '30s'", IDLE_LIMIT):
        role_database.execute(f"ALTER ROLE {role_database.role} SET {limit}")
    service = Service(
        role_database.at(pooler.port),
        tmp_path / "service",
        PGBOUNCER="true",
        FAULTS_LEASE_SECONDS=str(LEASE),
    )
    try:
        # The test itself connects past the pooler.
        service.database, turn = role_database.database, itertools.count()
        every = SIZE.storm / (RESTARTS + 1)
        storm(service, (lambda: pooler.restart(orderly=next(turn) % 2 == 0), every))
    finally:
        service.stop()
