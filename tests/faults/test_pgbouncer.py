"""The service behind PgBouncer in transaction mode, which passes no session settings on.

The limits of sessions must be set for the role: without them, the service does not start.
"""

import itertools
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2
import pytest
from django.db import connections

from tests.faults.database import Database, DatabaseStore, postgres_database
from tests.faults.pgbouncer import PROGRAM, PgBouncer
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG, SIZE
from tests.faults.test_storms import storm
from tests.faults.world import HOUR, World
from tests.test_startup import run

pytestmark = pytest.mark.postgres
needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed")

PASSWORD = "tests-only"
LOCK_TIMEOUT = 4.0
RESTARTS = 6
LOCK_ROOM = "SELECT 1 FROM centers_meetingroom WHERE id = %s FOR UPDATE"
START_SERVICE = ("-c", "import roombook.wsgi")


@dataclass(frozen=True, slots=True)
class RoleDatabase:
    """A database, and a role of its own without any limits."""

    database: Database
    role: str

    def connect(self, port: int | None = None) -> "psycopg2.extensions.connection":
        given = self.database.settings
        return psycopg2.connect(
            host=given["HOST"] if port is None else "127.0.0.1",
            port=port or given["PORT"],
            dbname=given["NAME"],
            user=self.role,
            password=PASSWORD,
        )

    def at(self, port: int | None = None) -> Database:
        given = self.database.settings
        host = given["HOST"] if port is None else "127.0.0.1"
        return postgres_database(host, port or given["PORT"], self.role, given["NAME"], PASSWORD)

    def set_limits(self) -> None:
        with self.connect() as session, session.cursor() as cursor:
            for name, value in (
                ("lock_timeout", "4s"),
                ("statement_timeout", "30s"),
                ("idle_in_transaction_session_timeout", "60s"),
            ):
                cursor.execute(f"ALTER ROLE {self.role} SET {name} = '{value}'")
        session.close()


@pytest.fixture
def role_database(store: DatabaseStore, django_db_blocker) -> Iterator[RoleDatabase]:
    role = f"pooled_{uuid.uuid4().hex}"
    with django_db_blocker.unblock():
        database = store.new()
        with database.open(), connections["default"].cursor() as cursor:
            cursor.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        yield RoleDatabase(database, role)
        with database.open(), connections["default"].cursor() as cursor:
            cursor.execute(f"DROP ROLE {role}")


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
    with role_database.connect() as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    session.close()
    assert run(*START_SERVICE, **environment).returncode == 0
    # A command needs the limits too, and other limits than those of the role are refused.
    other = run("manage.py", "erase_expired", STATEMENT_TIMEOUT="5", **environment)
    assert other.returncode == 1
    assert "statement_timeout = '5s'" in other.stderr


def test_service_with_pgbouncer_starts_while_the_database_is_away():
    url = "postgres://rooms:hidden@127.0.0.1:1/rooms"

    assert run(*START_SERVICE, PGBOUNCER="true", DATABASE_URL=url).returncode == 0


@needs_pgbouncer
def test_locked_room_behind_pgbouncer_is_refused_after_the_lock_timeout(
    role_database, pooler, tmp_path
):
    with role_database.database.open():
        room = World(None).room().pk
        role_database.set_limits()
        service = Service(role_database.at(pooler.port), tmp_path / "service", PGBOUNCER="true")
        try:
            world = World(service)
            start = world.start()
            body = {
                "MeetingRoomId": room,
                "StartDate": start.isoformat(),
                "EndDate": (start + HOUR).isoformat(),
            }
            customer = world.customer().client
            with lock_room(role_database, room):
                refused = customer.post("reservations/create", **body)

            assert (refused.status, refused.code) == (503, "ServiceUnavailable")
            assert LOCK_TIMEOUT <= refused.ms / 1000 < LOCK_TIMEOUT + 4
            assert customer.post("reservations/create", **body).status == 200
        finally:
            service.stop()


@contextmanager
def lock_room(role_database, room):
    """Lock the room in a session that does not go through PgBouncer."""
    session = role_database.connect()
    try:
        session.cursor().execute(LOCK_ROOM, [room])
        yield
    finally:
        session.close()


@needs_pgbouncer
@pytest.mark.skipif(not LONG, reason="bookings during restarts: make faults")
def test_restarts_of_pgbouncer_lose_nothing(role_database, pooler, tmp_path):
    role_database.set_limits()
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
