"""What the log of the service says while the database is away."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.service import Service
from tests.faults.world import World

pytestmark = pytest.mark.postgres

LASTING_SECONDS = 8.0
CLIENTS = 8


@pytest.fixture
def service(cluster, tmp_path):
    environment = {"FAULTS_OUTAGE_SECONDS": str(LASTING_SECONDS)}
    running = Service(cluster.database, tmp_path / "service", **environment)
    yield running
    running.stop()


def count_levels(service, done=0):
    """How many lines of each level the log has, and its length."""
    lines = service.log.read_text().splitlines()
    records = [json.loads(line) for line in lines[done:] if line.startswith("{")]
    assert "Traceback" not in "".join(lines[done:])
    return Counter(record["level"] for record in records), len(lines)


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


def test_interrupted_database_is_warnings_and_a_lasting_outage_is_one_error(cluster, service):
    with cluster.database.open():
        client = World(service).customer().client
    refused = interrupt(service, cluster, client, 0.5)
    levels, done = count_levels(service)
    assert refused > 0
    assert (levels["ERROR"], levels["WARNING"]) == (0, refused)
    assert client.post("account/reservations").status == 200

    time.sleep(LASTING_SECONDS)
    refused = interrupt(service, cluster, client, LASTING_SECONDS + 2)
    levels, _ = count_levels(service, done)
    assert (levels["ERROR"], levels["WARNING"]) == (1, refused)
