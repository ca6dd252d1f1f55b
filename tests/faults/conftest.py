"""Services and databases of the fault tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults import consistency
from tests.faults.database import Cluster, Database, DatabaseStore, Standby, programs
from tests.faults.service import Service
from tests.faults.size import LEASE

if TYPE_CHECKING:
    from pathlib import Path

Start = Callable[..., Service]


@pytest.fixture(scope="session")
def store(tmp_path_factory, django_db_blocker) -> Iterator[DatabaseStore]:
    """Creates a database for each service."""
    made = DatabaseStore(tmp_path_factory.mktemp("store"))
    with django_db_blocker.unblock():
        yield made
        made.remove()


@pytest.fixture(scope="module")
def start(store, tmp_path_factory) -> Iterator[Start]:
    """Starts services, which end with the tests of the module."""
    with ExitStack() as running:

        def run(*words: str, database: Database | None = None, **environment: str) -> Service:
            folder: Path = tmp_path_factory.mktemp("service")
            service = Service(database or store.new(), folder / "service", *words, **environment)
            running.callback(service.stop)
            return service

        yield run


@pytest.fixture(scope="module")
def guarded(start) -> Service:
    """The service as it is deployed."""
    return start()


@pytest.fixture(scope="module")
def short_lease_service(start) -> Service:
    """The service with a lease that is short enough to wait for."""
    return start(FAULTS_LEASE_SECONDS=str(LEASE))


@pytest.fixture(scope="session")
def cluster(store, django_db_blocker) -> Iterator[Cluster]:
    """A PostgreSQL cluster with fsync on: what it has committed is on the disk."""
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server programs on this machine")
    made = Cluster(folder)
    try:
        with django_db_blocker.unblock():
            made.start()
            made.restore(store.get_template())
            yield made
    finally:
        made.remove()


@pytest.fixture
def standby(cluster) -> Iterator[Standby]:
    """A streaming replica of the cluster."""
    made = Standby(cluster)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="session")
def durable(cluster, tmp_path_factory) -> Iterator[Service]:
    """The service on a database that can be restarted."""
    folder = tmp_path_factory.mktemp("durable") / "service"
    service = Service(cluster.database, folder, FAULTS_LEASE_SECONDS=str(LEASE))
    yield service
    service.stop()


@pytest.fixture
def check_everything() -> Callable[[Service], None]:
    """Reconciles the payments of a service and asserts that all data is consistent."""

    def check(service: Service) -> None:
        with service.database.open():
            consistency.run_reconcile_payments()
            assert consistency.find_problems() == []

    return check
