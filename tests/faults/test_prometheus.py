"""Prometheus with deploy/prometheus reads a running service, and Grafana's queries find series."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from roombook.jobs import JOB_INTERVALS
from tests import pg_plugin
from tests.faults.client import send
from tests.faults.processes import find_free_port, wait_for
from tests.faults.service import ROOT, Service
from tests.faults.size import LONG
from tests.faults.world import CARD, HOUR, World, card

PROMETHEUS = shutil.which("prometheus") or ""
DEPLOY = ROOT / "deploy"
RANGE = "30s"

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="waits for Prometheus: make faults"),
    pytest.mark.skipif(not PROMETHEUS, reason="Prometheus is not installed"),
]


@pytest.fixture
def service(cluster, standby, tmp_path) -> Iterator[Service]:
    """The service with a replica, so that all metrics exist. Its port of metrics is added."""
    metrics_port = find_free_port()
    running = Service(
        cluster.database,
        tmp_path / "service",
        DATABASE_REPLICA_URL=standby.database.url,
        METRICS_BIND=f"127.0.0.1:{metrics_port}",
    )
    running.metrics_port = metrics_port
    yield running
    running.stop_gracefully()


class Prometheus:
    """Prometheus with the files of deploy/prometheus. It reads every second instead of 15."""

    def __init__(self, folder: Path, metrics_port: int) -> None:
        folder.mkdir()
        text = (DEPLOY / "prometheus/prometheus.yml").read_text()
        text = text.replace("127.0.0.1:9464", f"127.0.0.1:{metrics_port}").replace("15s", "1s")
        (folder / "prometheus.yml").write_text(text)
        shutil.copy(DEPLOY / "prometheus/alerts.yml", folder)
        self.port = find_free_port()
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    PROMETHEUS,
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )

    def read(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(url, timeout=30) as response:
            return json.load(response)["data"]

    def is_up(self) -> bool:
        try:
            return bool(self.read("query", query='up{job="roombook"} == 1')["result"])
        except OSError:
            return False


@pytest.fixture
def prometheus(service, tmp_path) -> Iterator[Prometheus]:
    started = Prometheus(tmp_path / "prometheus", service.metrics_port)
    yield started
    pg_plugin.stop_server(started.process)


def read_queries() -> dict[str, str]:
    """The queries of the dashboard, with a range instead of Grafana's variable."""
    panels = json.loads((DEPLOY / "grafana/roombook.json").read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", [])]
    return {each["expr"]: each["expr"].replace("$__rate_interval", RANGE) for each in targets}


def test_every_query_of_the_dashboard_and_every_rule_finds_what_the_service_measures(
    service, prometheus
):
    with service.database.open():
        world = World(service)
        room, customer = world.room(), world.customer()
        starts = [world.start() for _ in range(40)]
    client = customer.client
    for command in JOB_INTERVALS:
        assert service.manage(command).returncode == 0
    wait_for(prometheus.is_up, "the first metrics")
    queries = read_queries()
    assert len(queries) > 20
    empty = set(queries)

    def have_series() -> bool:
        """Customers do everything once more; then no query is empty."""
        start = starts.pop()
        span = {"StartDate": start.isoformat(), "EndDate": (start + HOUR).isoformat()}
        draft = client.post("reservations/create", MeetingRoomId=room.pk, **span)
        pk = draft.body["Reservation"]["Id"]
        assert client.checkout(pk, card("4000000000000002")).code == "CardDeclined"
        assert client.checkout(pk, CARD).code == "Confirmed"
        assert client.post("reservations/create", MeetingRoomId=room.pk, **span).status == 409
        assert client.post("locations/search", Query="Denver").status == 200
        sign_in = json.dumps({"EmailAddress": f"{pk}@example.com", "Password": "wrong"})
        headers = {"Content-Type": "application/json"}
        assert send(service.port, "/api/sign-in", sign_in, headers).status == 401
        for query in list(empty):
            if prometheus.read("query", query=queries[query])["result"]:
                empty.remove(query)
        return not empty

    try:
        wait_for(have_series, "series of each query")
    except RuntimeError:
        assert empty == set()

    rules = [rule for group in prometheus.read("rules")["groups"] for rule in group["rules"]]
    names = re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus/alerts.yml").read_text())
    assert [rule["name"] for rule in rules] == names
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] == "err"] == []
