"""Searches and reports read from a replica as long as it is near the primary."""

from urllib.request import Request, urlopen

import pytest

from tests.factories_centers import make_center_with_room
from tests.faults.processes import find_free_port, wait_for
from tests.faults.service import Service
from tests.faults.world import World
from tests.metrics.scraping import scrape

pytestmark = pytest.mark.postgres

REPORT = "/admin/reservations/reservation/reports/revenue/?format=csv&table=month"


@pytest.fixture
def service(cluster, standby, tmp_path):
    metrics_port = find_free_port()
    environment = {
        "DATABASE_REPLICA_URL": standby.database.url,
        "METRICS_BIND": f"127.0.0.1:{metrics_port}",
        "WEB_CONCURRENCY": "1",
    }
    running = Service(cluster.database, tmp_path / "service", **environment)
    running.metrics_port = metrics_port
    yield running
    running.stop_gracefully()


class Searches:
    """Searches, and the databases that answered them."""

    def __init__(self, service, client, city):
        self.service, self.client, self.city = service, client, city

    def search(self):
        """Return the names of the centers in the city, and whether each is a favorite."""
        answer = self.client.post("locations/search", Query=self.city)
        assert answer.status == 200
        return {center["Name"]: center.get("IsFavorite") for center in answer.body["Centers"]}

    def count(self, source):
        samples = scrape(self.service.metrics_port)
        return float(samples.get(f'roombook_replica_reads_total{{source="{source}"}}', 0))

    def search_from(self, source):
        """Search until this database answers."""
        found = []

        def has_answered():
            before = self.count(source)
            found.append(self.search())
            return self.count(source) > before

        wait_for(has_answered, f"an answer from the {source}")
        return found[-1]


def test_search_and_report_read_from_a_replica_unless_it_lags_or_is_away(cluster, standby, service):
    with cluster.database.open():
        world = World(service)
        customer, session = world.customer(), world.staff_session()
        center = make_center_with_room(name="First", city="Replicaville")
    searches = Searches(service, customer.client, "Replicaville")
    assert searches.search_from("replica") == {"First": False}
    before = searches.count("replica")
    cookie = {"Cookie": f"sessionid={session}"}
    with urlopen(Request(f"http://127.0.0.1:{service.port}{REPORT}", headers=cookie)) as response:
        assert "Month" in response.read().decode()
    assert searches.count("replica") == before + 1

    # A search after a change of one's favorites shows it, although the replica does not know it.
    standby.pause_replay()
    customer.client.post("account/update-favorite", CenterId=center.pk, IsFavorite=True)
    assert searches.search_from("replica") == {"First": True}

    # The replica lags: the primary answers.
    with cluster.database.open():
        make_center_with_room(name="Second", city="Replicaville")
    assert set(searches.search_from("primary")) == {"First", "Second"}
    standby.resume_replay()
    assert set(searches.search_from("replica")) == {"First", "Second"}

    # The replica dies: no search fails.
    standby.stop()
    for _ in range(20):
        assert set(searches.search()) == {"First", "Second"}
    searches.search_from("primary")
