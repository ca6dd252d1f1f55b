"""The disk of the database is full for a while, while customers book."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.db import connections

from tests.faults.database import Cluster, programs
from tests.faults.load import Load
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="fills a disk: make faults"),
    pytest.mark.skipif(
        os.getuid() != 0 or programs() is None, reason="needs a small file system of its own"
    ),
]

DISK_MEGABYTES = 200
CLIENTS = 6
FULL_SECONDS = 10.0
MAX_SECONDS = 300.0


@pytest.fixture
def small_disk(django_db_blocker) -> Iterator[Cluster]:
    """A cluster on a file system in memory with little space."""
    folder = programs()
    assert folder is not None
    cluster = Cluster(folder)
    owner = f"uid={cluster.user_options['user']}"
    size = f"size={DISK_MEGABYTES}m,mode=0700,{owner}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", cluster.folder], check=True)
    try:
        with django_db_blocker.unblock():
            cluster.start().migrate()
            yield cluster
    finally:
        stop_server(cluster)
        subprocess.run(["umount", cluster.folder], check=True)
        cluster.folder.rmdir()


def stop_server(cluster: Cluster) -> None:
    with suppress(subprocess.CalledProcessError):
        cluster.stop_server()


def fill(cluster: Cluster) -> None:
    """Something else writes until the disk is full."""
    with suppress(OSError), (cluster.folder / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def book_on_a_full_disk(cluster: Cluster, folder: Path) -> list[str]:
    """Let customers book before, while and after the disk is full; then the power fails.

    Returns the acknowledged bookings that are lost, and all inconsistencies.
    """
    service = Service(cluster.database, folder / "service", FAULTS_LEASE_SECONDS=str(LEASE))
    try:
        load = Load(service, CLIENTS, MAX_SECONDS)
        time.sleep(4.0)
        end = time.monotonic() + FULL_SECONDS
        while time.monotonic() < end:
            # What PostgreSQL frees in the meantime is filled again.
            fill(cluster)
            time.sleep(0.5)
        stopped_at = load.count_acknowledged()
        is_running = cluster.is_running()
        (cluster.folder / "filler").unlink()
        if not is_running:
            # As its unit or Patroni does.
            cluster.start_server()
        freed_at = time.monotonic()
        while load.count_acknowledged() < stopped_at + 5:
            assert time.monotonic() < freed_at + 60
            time.sleep(0.1)
        load.stop()
        assert any(answer.status == 503 for answer in load.wait())
        cluster.restart("immediate")
        return load.end()
    finally:
        service.stop()


def test_full_disk_and_a_power_failure_lose_nothing(small_disk, tmp_path):
    assert book_on_a_full_disk(small_disk, tmp_path) == []


def test_control_commits_that_do_not_wait_for_the_disk_lose_bookings(small_disk, tmp_path):
    with small_disk.database.open(), connections["default"].cursor() as cursor:
        cursor.execute("ALTER SYSTEM SET synchronous_commit = off")
        cursor.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        cursor.execute("ALTER SYSTEM SET wal_writer_flush_after = '100MB'")
        cursor.execute("SELECT pg_reload_conf()")

    assert any("is lost" in each for each in book_on_a_full_disk(small_disk, tmp_path))
