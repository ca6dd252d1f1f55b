"""The figures that a scrape reads from the database."""

import datetime as dt

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.utils import timezone

from accounts.models import OutboxMessage
from payments.models import Payment, PaymentState, Refund
from reservations import gauges
from reservations.integrations.events import create_test_event, publish_events
from reservations.models import Reservation, WebhookDelivery
from reservations.models.status import Status
from roombook.deliveries import DeliveryState
from roombook.jobs import JOB_INTERVALS
from roombook.models import JobRun
from tests.factories_reservations import NOW, make_booking, make_pending_booking
from tests.webhooks.helpers import make_endpoint

MINUTE = dt.timedelta(minutes=1)


def read(now):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for gauge in gauges.read_gauges(now=now)
        for sample in gauge.samples
    }


@pytest.mark.django_db
def test_gauges_of_an_empty_database_are_zero():
    figures = read(timezone.now())

    for name in ("payments_in_doubt", "payments_in_doubt_oldest_seconds", "outbox_waiting"):
        assert figures[(f"roombook_{name}",)] == 0
    for kind in ("capture", "void", "refund"):
        assert figures[("roombook_obligations_due", kind)] == 0
    for command, interval in JOB_INTERVALS.items():
        assert figures[("roombook_job_last_success_timestamp_seconds", command)] == 0
        assert figures[("roombook_job_interval_seconds", command)] == interval.total_seconds()


@pytest.mark.django_db
@pytest.mark.inconsistent_data
def test_gauges_count_what_is_due_and_its_age(django_assert_max_num_queries):
    now = NOW
    captured, authorized, voided, unknown = (make_booking(now=now) for _ in range(4))
    make_pending_booking(now=now)  # Its authorization is not due.
    payments = Payment.objects.all()
    for booking, state in ((authorized, "authorized"), (voided, "authorized")):
        payments.filter(reservation=booking).update(
            state=state, authorized_at=now - 9 * MINUTE, captured_at=None
        )
    Reservation.objects.filter(pk=voided.pk).update(
        status=Status.CANCELLED, holds_slot=False, cancelled_at=now - 2 * MINUTE
    )
    payments.filter(reservation=voided).update(counts=False)
    payments.filter(reservation=unknown).update(
        state=PaymentState.STARTED,
        counts=False,
        captured_at=None,
        lease_until=now - 3 * MINUTE,
    )
    Refund.objects.create(
        payment=payments.get(reservation=captured), amount=1, created_at=now - 4 * MINUTE
    )
    OutboxMessage.objects.update(created_at=now - 5 * MINUTE)

    # As many with more rows: each figure is an aggregate.
    with django_assert_max_num_queries(13):
        figures = read(now)

    for kind, minutes in (("capture", 9), ("void", 2), ("refund", 4)):
        assert figures[("roombook_obligations_due", kind)] == 1
        assert figures[("roombook_obligations_due_oldest_seconds", kind)] == minutes * 60
    assert figures[("roombook_payments_in_doubt",)] == 1
    assert figures[("roombook_payments_in_doubt_oldest_seconds",)] == 180
    assert figures[("roombook_outbox_waiting",)] == OutboxMessage.objects.count() > 0
    assert figures[("roombook_outbox_oldest_seconds",)] == 300


@pytest.mark.django_db
def test_regular_command_stores_its_success_and_none_after_a_problem():
    for command in ("erase_expired", "send_outbox", "erase_expired", "reconcile_payments"):
        call_command(command)

    runs = JobRun.objects.by_command()
    assert set(runs) == {"erase_expired", "send_outbox", "reconcile_payments"}
    assert runs["erase_expired"].succeeded_at == runs["erase_expired"].ended_at
    figures = read(timezone.now())
    key = "roombook_job_last_success_timestamp_seconds"
    assert figures[(key, "erase_expired")] == runs["erase_expired"].succeeded_at.timestamp()

    with pytest.raises(CommandError):
        call_command("reconcile_payments", since=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    run = JobRun.objects.by_command()["reconcile_payments"]
    assert run.succeeded_at == runs["reconcile_payments"].succeeded_at < run.ended_at


def test_collector_reads_once_for_scrapes_in_a_row_and_reports_a_database_that_is_away(monkeypatch):
    reads = []

    def fail(*, now):
        reads.append(now)
        raise DatabaseError("away")

    monkeypatch.setattr(gauges, "read_gauges", fail)
    collector = gauges.DatabaseCollector()

    for _ in range(2):
        [is_up] = collector.collect()
        assert (is_up.name, is_up.samples[0].value) == ("roombook_database_up", 0)
    assert len(reads) == 1
    assert connection.connection is None


@pytest.mark.django_db
def test_gauges_count_events_that_are_not_delivered_unless_nothing_is_sent(settings):
    make_booking(now=NOW)
    assert read(NOW + MINUTE)[("roombook_webhooks_oldest_seconds",)] == 60
    endpoint = make_endpoint()
    deliveries = [create_test_event(endpoint, now=NOW) for _ in range(3)]
    make_endpoint(is_active=False, disabled_reason="It answered 410 Gone.")
    make_endpoint(is_active=False)
    publish_events(now=NOW + MINUTE)
    WebhookDelivery.objects.filter(pk=deliveries[0].pk).update(
        state=DeliveryState.FAILED, next_attempt_at=None
    )

    figures = read(NOW + 5 * MINUTE)

    assert figures[("roombook_webhooks_waiting",)] == 4
    assert figures[("roombook_webhooks_oldest_seconds",)] == 300
    assert figures[("roombook_webhooks_failed",)] == 1
    assert figures[("roombook_webhooks_disabled",)] == 1

    settings.SEND_WEBHOOKS = False
    figures = read(NOW + 5 * MINUTE)

    assert figures[("roombook_webhooks_waiting",)] == 0
    assert figures[("roombook_webhooks_oldest_seconds",)] == 0
