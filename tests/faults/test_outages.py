"""What the log of the service says while the database is away."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.service import Service
from tests.faults.world import World

pytestmark = pytest.mark.postgres

CLIENTS = 8


@pytest.fixture
def service(cluster, tmp_path):
    running = Service(cluster.database, tmp_path / "service")
    yield running
    running.stop()


def count_levels(service):
    """How many lines of each level the log has."""
    lines = service.log.read_text().splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    assert "Traceback" not in "".join(lines)
    return Counter(record["level"] for record in records)


def interrupt(service, cluster, client, seconds):
    """Interrupt the database while clients call. Return how many of their calls got 503."""
    is_over = False

    def call_repeatedly():
        refused = 0
        while not is_over:
            refused += client.post("account/reservations").status == 503
            time.sleep(0.05)
        return refused

    with ThreadPoolExecutor(CLIENTS) as pool:
        calls = [pool.submit(call_repeatedly) for _ in range(CLIENTS)]
        cluster.interrupt(seconds)
        time.sleep(0.5)
        is_over = True
        return sum(call.result() for call in calls)


def test_interrupted_database_is_warnings_without_an_error(cluster, service):
    with cluster.database.open():
        client = World(service).customer().client
    refused = interrupt(service, cluster, client, 0.5)
    levels = count_levels(service)
    assert refused > 0
    assert (levels["ERROR"], levels["WARNING"]) == (0, refused)
    assert client.post("account/reservations").status == 200
