"""What the middleware and the domain count."""

import pytest
from prometheus_client import REGISTRY

from tests.http import post
from tests.world import PAYMENT_INFO

DECLINED_NUMBER = "4000000000000002"

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client, settings):
    """A client of a service with METRICS_BIND set."""
    settings.MIDDLEWARE = ["roombook.metrics.middleware.MetricsMiddleware", *settings.MIDDLEWARE]
    return client


class Changes:
    """How much metrics have changed since it was created."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        return {
            (sample.name, *sample.labels.values()): sample.value
            for metric in REGISTRY.collect()
            for sample in metric.samples
            if sample.name.startswith("roombook_")
        }

    def of(self, name, *labels):
        return self.read().get((name, *labels), 0) - self.before.get((name, *labels), 0)


def test_requests_are_counted_by_operation_status_and_error(world):
    changes = Changes()

    assert world.call("Check room availability", ".csv").status_code == 200
    off_grid = world.call("Create reservation", StartDate="2027-04-05T09:07:00")
    assert off_grid.status_code == 409
    world.client.get("/admin/login/")
    world.client.get("/api/4242424242424242")
    world.client.get("/healthz")

    operation = "api/meeting-rooms/check-availability"
    assert changes.of("roombook_request_seconds_count", operation, "200") == 1
    assert 0 < changes.of("roombook_request_seconds_sum", operation, "200") < 60
    assert changes.of("roombook_database_statements_total", operation) == 3
    assert 0 < changes.of("roombook_database_seconds_total", operation) < 60
    conflicts = ("roombook_errors_total", "api/reservations/create", "SlotUnavailable")
    assert changes.of(*conflicts) == 1
    for operation, status in (("back office", "200"), ("other", "404"), ("healthz", "200")):
        assert changes.of("roombook_request_seconds_count", operation, status) == 1
    # Neither the path nor anything else that a client chooses.
    assert not [key for key in changes.read() if "4242" in str(key)]


def test_checkouts_are_counted_by_outcome(world):
    changes = Changes()

    assert world.call("Checkout", TestMode=True).status_code == 200  # no checkout
    assert world.call("Checkout").status_code == 200
    payment = {**PAYMENT_INFO, "CreditCardNumber": DECLINED_NUMBER}
    assert world.call("Checkout", PaymentInfo=payment).status_code == 402
    assert world.call("Checkout", ReservationId=world.waiting.pk).status_code == 200

    assert changes.of("roombook_checkouts_total", "Confirmed") == 1
    assert changes.of("roombook_checkouts_total", "CardDeclined") == 1
    assert changes.of("roombook_checkouts_total", "ActionRequired") == 1
    declines = ("roombook_errors_total", "api/reservations/checkout", "CardDeclined")
    assert changes.of(*declines) == 1


def test_failed_sign_ins_of_the_api_and_of_the_back_office_are_counted(client):
    changes = Changes()

    post(client, "/api/sign-in", {"EmailAddress": "ada@example.com", "Password": "wrong"})
    client.post("/admin/login/", {"username": "ada@example.com", "password": "wrong"})

    assert changes.of("roombook_sign_in_failures_total") == 2
