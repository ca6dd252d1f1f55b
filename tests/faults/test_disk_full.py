"""The disk of the database is full for a while, while customers book."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.faults import consistency, figures
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


def test_full_disk_loses_nothing_and_the_service_recovers_by_itself(small_disk, tmp_path):
    row = figures.get_row("disk full, and back")
    service = Service(small_disk.database, tmp_path / "service", FAULTS_LEASE_SECONDS=str(LEASE))
    try:
        load = Load(service, CLIENTS, MAX_SECONDS)
        time.sleep(4.0)
        end = time.monotonic() + FULL_SECONDS
        while time.monotonic() < end:
            # What PostgreSQL frees in the meantime is filled again.
            fill(small_disk)
            time.sleep(0.5)
        stopped_at = load.count_acknowledged()
        is_running = small_disk.is_running()
        (small_disk.folder / "filler").unlink()
        if not is_running:
            # As its unit or Patroni does.
            small_disk.start_server()
        freed_at = time.monotonic()
        while load.count_acknowledged() < stopped_at + 5:
            assert time.monotonic() < freed_at + 60
            time.sleep(0.1)
        row.remarks = (
            f"PostgreSQL {'went on' if is_running else 'had to be started again'};"
            f" {time.monotonic() - freed_at:.1f} s until further bookings"
        )
        load.stop()
        received = load.wait(row)
        assert {answer.status for answer in received} <= {0, 200, 409, 503}
        assert row.unavailable > 0
        time.sleep(LEASE)
        with service.database.open():
            consistency.run_reconcile_payments()
            assert consistency.find_problems() == []
            lost = load.find_lost()
            row.captures += consistency.count_captures()
        row.lost += len(lost)
        assert lost == []
    finally:
        service.stop()
