"""Services, databases and the table of figures for the tests of faults."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.faults import books, figures
from tests.faults.database import Cluster, Database, DatabaseStore, programs
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG

Start = Callable[..., Service]


@pytest.fixture(scope="session")
def store(tmp_path_factory, django_db_blocker) -> Iterator[DatabaseStore]:
    """Where each service gets a database of its own."""
    made = DatabaseStore(tmp_path_factory.mktemp("store"))
    with django_db_blocker.unblock():
        yield made
        made.remove()


@pytest.fixture(scope="module")
def start(store, tmp_path_factory) -> Iterator[Start]:
    """Start a service; it ends with the tests of its file."""
    with ExitStack() as running:

        def run(*words: str, database: Database | None = None, **environment: str) -> Service:
            folder: Path = tmp_path_factory.mktemp("service")
            service = Service(database or store.new(), folder / "it", *words, **environment)
            running.callback(service.stop)
            return service

        yield run


@pytest.fixture(scope="module")
def guarded(start) -> Service:
    """The service as it is deployed."""
    return start()


@pytest.fixture(scope="module")
def short_lease_service(start) -> Service:
    """The service with a lease that tests can wait for."""
    return start(FAULTS_LEASE_SECONDS=str(LEASE))


@pytest.fixture(scope="session")
def cluster(django_db_blocker) -> Iterator[Cluster]:
    """A PostgreSQL with fsync on: what it acknowledged is on the disk."""
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server programs on this machine")
    made = Cluster(folder)
    try:
        with django_db_blocker.unblock():
            made.start().migrate()
            yield made
    finally:
        made.remove()


@pytest.fixture(scope="session")
def durable(cluster, tmp_path_factory) -> Iterator[Service]:
    """The service on a database that can be restarted."""
    folder = tmp_path_factory.mktemp("durable") / "it"
    service = Service(cluster.database, folder, FAULTS_LEASE_SECONDS=str(LEASE))
    yield service
    service.stop()


@pytest.fixture
def check_everything() -> Callable[[Service], None]:
    """What holds after every test: reconciled, nothing is wrong in any book."""

    def check(service: Service, case: str) -> None:
        with service.database.open():
            books.run_reconcile_payments()
            found = books.find_problems()
        figures.get_row(case).violations += len(found)
        assert not found, "\n".join(found)

    return check


# What does not depend on the database; the quick form asks it of PostgreSQL only.
ALIKE = {"test_clock", "test_gateway", "test_races"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LONG or connection.vendor == "postgresql":
        return
    for item in items:
        if item.path.stem in ALIKE and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.skip(reason=f"{item.path.stem} on SQLite: make faults"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if LONG and figures.ROWS:
        terminalreporter.section("faults: what was measured")
        for line in figures.render_table():
            terminalreporter.write_line(line)
