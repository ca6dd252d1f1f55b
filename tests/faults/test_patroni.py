"""Bookings while the servers of a Patroni cluster fail, with deploy/patroni/patroni.yml.

Each case has a control that shows what is lost without the rule that it tests.
"""

import sys
import time
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from tests.faults.load import Load
from tests.faults.patroni import PatroniCluster, is_installed
from tests.faults.processes import wait_for
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="a cluster of three servers: make faults"),
    pytest.mark.skipif(not is_installed(), reason="Patroni and etcd are not installed"),
]

CLIENTS = 8
WARM_UP_SECONDS = 6.0
AWAY_SECONDS = 35.0
# Longer than any failover.
MAX_SECONDS = 240.0


@pytest.fixture(scope="module")
def patroni(django_db_blocker) -> Iterator[PatroniCluster]:
    cluster = PatroniCluster()
    try:
        with django_db_blocker.unblock():
            cluster.create_database()
            yield cluster
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def service(patroni, tmp_path_factory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("patroni") / "service"
    running = Service(patroni.database(), folder, FAULTS_LEASE_SECONDS=str(LEASE))
    yield running
    running.stop()


@pytest.fixture
def synchronous(patroni) -> None:
    """All three servers are there, and commits wait for one standby."""
    for name in patroni.ports:
        if name not in patroni.processes:
            patroni.start(name)
    patroni.call("PATCH", "config", synchronous_mode=True)
    patroni.wait_for_members()


def test_patroni_refuses_changes_without_its_password(patroni):
    for password in (None, "wrong"):
        with pytest.raises(HTTPError, match="401"):
            patroni.call("PATCH", "config", password=password, ttl=30)


def start_load(service: Service) -> Load:
    load = Load(service, CLIENTS, MAX_SECONDS)
    time.sleep(WARM_UP_SECONDS)
    assert load.count_acknowledged() > 0
    return load


def wait_for_bookings(load: Load) -> None:
    before = load.count_acknowledged()
    seconds = wait_for(lambda: load.count_acknowledged() > before + 2, "further bookings")
    sys.stdout.write(f"{seconds:.1f} s until the next booking\n")


def kill_primary(patroni: PatroniCluster) -> str:
    """Let the power of the primary fail, a second after the network became slow."""
    old = patroni.primary
    assert old is not None
    patroni.stop_sending()
    time.sleep(1.0)
    patroni.kill(old)
    return old


@pytest.mark.usefixtures("synchronous")
def test_killed_primary_loses_nothing_and_returns_as_a_standby(patroni, service):
    load = start_load(service)
    old = kill_primary(patroni)
    wait_for_bookings(load)
    assert patroni.primary != old
    patroni.start(old)
    patroni.wait_for_members()
    time.sleep(2.0)
    assert not patroni.is_writable(old)

    assert load.end() == []


@pytest.mark.usefixtures("synchronous")
def test_etcd_away_does_not_stop_bookings(patroni, service):
    load = start_load(service)
    primary = patroni.primary
    patroni.kill("etcd")
    # Longer than the lock.
    time.sleep(AWAY_SECONDS)
    wait_for_bookings(load)
    assert patroni.is_writable(primary)
    patroni.start_etcd()
    patroni.wait_for_members()

    # The control: without failsafe_mode, the primary gives up its lock.
    patroni.call("PATCH", "config", failsafe_mode=False)
    time.sleep(WARM_UP_SECONDS)
    patroni.kill("etcd")
    time.sleep(AWAY_SECONDS)
    before = load.count_acknowledged()
    time.sleep(5.0)
    assert load.count_acknowledged() == before
    patroni.start_etcd()
    wait_for_bookings(load)
    patroni.call("PATCH", "config", failsafe_mode=True)
    patroni.wait_for_members()

    assert load.end() == []


@pytest.mark.usefixtures("synchronous")
def test_control_asynchronous_standbys_and_an_unfenced_primary_lose_bookings(patroni, service):
    patroni.call("PATCH", "config", synchronous_mode=False)
    wait_for(lambda: patroni.find_role("sync_standby") is None, "asynchronous standbys")
    load = start_load(service)
    old = kill_primary(patroni)
    wait_for_bookings(load)
    load.stop()
    load.wait()
    with service.database.open():
        assert load.find_lost() != []

    # The old primary returns without Patroni, and the service lists it first.
    new = patroni.primary
    patroni.start_without_patroni(old)
    listed = Service(
        patroni.database(old, new), service.folder / "unfenced", FAULTS_LEASE_SECONDS=str(LEASE)
    )
    try:
        load = start_load(listed)
        load.stop()
        load.wait()
    finally:
        listed.stop()
    patroni.kill(f"{old} alone")
    with patroni.database(new).open():
        assert load.find_lost() != []
    patroni.start(old)
    patroni.wait_for_members(synchronous=False)
    assert not patroni.is_writable(old)
