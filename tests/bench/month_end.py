"""Measures what the report for the end of a month costs the database, for `make bench`."""

import datetime as dt
import os
import statistics

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
    django.setup()

from django.db import connection
from django.db.models import Max

from payments.models import LedgerLine
from reservations.local_days import LocalDays
from reservations.reports.month_end import build_report
from reservations.reports.selection import ReportSelection
from tests.bench.servers import get_cpu_seconds

ROUNDS = 5
# Other processes use the machine too, so elapsed times would say little.
WITHOUT_PARALLEL_WORKERS = "SET max_parallel_workers_per_gather = 0"


def describe_month_end() -> str:
    """Measure the last month that is over: all centers, and one of them."""
    latest = LedgerLine.objects.aggregate(day=Max("day"))["day"]
    month = LocalDays.from_month(latest.replace(day=1) - dt.timedelta(days=1))
    center = LedgerLine.objects.values_list("center", flat=True)[0]
    everything, one = (
        measure(ReportSelection(month, each)) for each in (None, frozenset({center}))
    )
    return (
        f"Month's end, {LedgerLine.objects.count():,} lines of the ledger: {everything:.2f} s of"
        f" the database's processor time for all centers, {one:.2f} s for one center."
    )


def measure(selection: ReportSelection) -> float:
    """The median processor time of the database in seconds."""
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_PARALLEL_WORKERS)
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    found = []
    for _ in range(ROUNDS):
        before = get_cpu_seconds(pid)
        build_report(selection)
        found.append(get_cpu_seconds(pid) - before)
    return statistics.median(found)


if __name__ == "__main__":
    print(describe_month_end())  # noqa: T201
