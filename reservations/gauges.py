"""Figures of the database for Prometheus, read when it asks; docs/metrics.md explains each.

All machines report the same figures, because they have one database.
"""

import datetime as dt
import threading
import time
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, F, Min, Q
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from accounts.models import OutboxMessage
from payments.models import Payment, Refund
from reservations.booking.charging import CAPTURE_DUE_STATUSES
from reservations.models import WebhookDelivery, WebhookEndpoint
from reservations.models.history import get_unpublished
from roombook.deliveries import DeliveryState
from roombook.jobs import JOB_INTERVALS
from roombook.metrics.server import serve_metrics
from roombook.models import JobRun

# Further scrapes within this time get the same figures, so that they cost the database nothing.
KEEP_SECONDS = 5.0
# A scrape waits no longer than this for a statement.
STATEMENT_SECONDS = 5
FAILED_EMAILS_PERIOD = dt.timedelta(days=1)
FAILED_WEBHOOKS_PERIOD = dt.timedelta(days=7)


def serve() -> None:
    """Serve all metrics of this machine at METRICS_BIND. Each worker of gunicorn calls it."""
    assert settings.METRICS_BIND is not None
    serve_metrics(settings.METRICS_BIND, [DatabaseCollector()])


class DatabaseCollector(Collector):
    """Reads the figures at most once in `KEEP_SECONDS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gauges: list[GaugeMetricFamily] = []
        self._read_at = float("-inf")

    def collect(self) -> Iterable[GaugeMetricFamily]:
        with self._lock:
            if time.monotonic() - self._read_at > KEEP_SECONDS:
                self._gauges = self._read()
                self._read_at = time.monotonic()
            return self._gauges

    def _read(self) -> list[GaugeMetricFamily]:
        is_up = GaugeMetricFamily("roombook_database_up", "1 if the database answers, else 0.")
        try:
            gauges = read_gauges(now=timezone.now())  # noqa: TID251 (a scrape reads the clock)
            is_up.add_metric([], 1)
        except (DatabaseError, InterfaceError):
            gauges = []
            is_up.add_metric([], 0)
        finally:
            # Each scrape has a thread of its own, and Django keeps one connection per thread.
            connection.close()
        return [is_up, *gauges]


def read_gauges(*, now: dt.datetime) -> list[GaugeMetricFamily]:
    """Return the figures. The number of statements is fixed, and each uses a small index."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
        return [*_read_payments(now), *_read_deliveries(now), *_read_jobs()]


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"roombook_{name}", help_text, value=value)


def _read_payments(now: dt.datetime) -> Iterator[GaugeMetricFamily]:
    in_doubt = Payment.objects.stale(now).aggregate(count=Count("pk"), since=Min("lease_until"))
    text = "Payments whose outcome is unknown after their lease."
    yield _gauge("payments_in_doubt", text, in_doubt["count"])
    text = "Seconds since the first of these leases expired; 0 if there is none."
    yield _gauge("payments_in_doubt_oldest_seconds", text, _get_age(in_doubt["since"], now))
    captures = Q(counts=True, reservation__status__in=sorted(CAPTURE_DUE_STATUSES))
    voids = Q(counts=False)
    due_since = Greatest(
        "authorized_at", Coalesce(F("reservation__cancelled_at"), F("authorized_at"))
    )
    due = Payment.objects.authorized().aggregate(
        captures=Count("pk", filter=captures),
        captures_since=Min(due_since, filter=captures),
        voids=Count("pk", filter=voids),
        voids_since=Min(due_since, filter=voids),
    )
    refunds = Refund.objects.due().aggregate(count=Count("pk"), since=Min("created_at"))
    count = GaugeMetricFamily(
        "roombook_obligations_due",
        "Captures, voids and refunds that must still be made at the gateway.",
        labels=["kind"],
    )
    age = GaugeMetricFamily(
        "roombook_obligations_due_oldest_seconds",
        "Seconds for which the oldest of them has been due; 0 if there is none.",
        labels=["kind"],
    )
    for kind, number, since in (
        ("capture", due["captures"], due["captures_since"]),
        ("void", due["voids"], due["voids_since"]),
        ("refund", refunds["count"], refunds["since"]),
    ):
        count.add_metric([kind], number)
        age.add_metric([kind], _get_age(since, now))
    yield from (count, age)


def _read_deliveries(now: dt.datetime) -> Iterator[GaugeMetricFamily]:
    emails = OutboxMessage.objects.waiting().aggregate(count=Count("pk"), since=Min("created_at"))
    yield _gauge("outbox_waiting", "E-mails that are not sent yet.", emails["count"])
    text = "Seconds since the oldest of them was written; 0 if there is none."
    yield _gauge("outbox_oldest_seconds", text, _get_age(emails["since"], now))
    failed = Q(state=DeliveryState.FAILED, created_at__gt=now - FAILED_EMAILS_PERIOD)
    text = "E-mails of the last 24 hours that failed for good."
    yield _gauge("outbox_failed", text, OutboxMessage.objects.filter(failed).count())
    unpublished = get_unpublished().order_by("pk").values_list("timestamp", flat=True).first()
    to_be_sent = WebhookDelivery.objects.waiting().to_active_endpoints()
    if not settings.SEND_WEBHOOKS:  # They wait on purpose.
        to_be_sent = to_be_sent.none()
    events = to_be_sent.aggregate(count=Count("pk"), since=Min("created_at"))
    yield _gauge("webhooks_waiting", "Events that are not delivered yet.", events["count"])
    text = "Seconds since the oldest event that is not delivered or not published; 0: none."
    ages = (_get_age(since, now) for since in (unpublished, events["since"]))
    yield _gauge("webhooks_oldest_seconds", text, max(ages))
    failed = Q(state=DeliveryState.FAILED, created_at__gt=now - FAILED_WEBHOOKS_PERIOD)
    text = "Deliveries of the last 7 days that failed for good."
    yield _gauge("webhooks_failed", text, WebhookDelivery.objects.filter(failed).count())
    disabled = WebhookEndpoint.objects.disabled_automatically().count()
    yield _gauge("webhooks_disabled", "Webhooks that were disabled automatically.", disabled)


def _read_jobs() -> Iterator[GaugeMetricFamily]:
    ended, succeeded, interval = (
        GaugeMetricFamily(f"roombook_job_{name}", help_text, labels=["command"])
        for name, help_text in (
            ("last_end_timestamp_seconds", "When the regular command last ended; 0: never."),
            ("last_success_timestamp_seconds", "When it last ended without an error; 0: never."),
            ("interval_seconds", "How often it should run."),
        )
    )
    runs = JobRun.objects.by_command()
    for command, every in JOB_INTERVALS.items():
        run = runs.get(command)
        ended.add_metric([command], run.ended_at.timestamp() if run else 0)
        success = run.succeeded_at if run else None
        succeeded.add_metric([command], success.timestamp() if success else 0)
        interval.add_metric([command], every.total_seconds())
    yield from (ended, succeeded, interval)


def _get_age(since: dt.datetime | None, now: dt.datetime) -> float:
    return max((now - since).total_seconds(), 0.0) if since else 0.0
