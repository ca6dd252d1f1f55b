"""Measures what the report for the end of a month costs the database, for `make bench`."""

import datetime as dt
import statistics

import django

django.setup()

from django.db import connection  # noqa: E402 (models need settings)
from django.db.models import Max  # noqa: E402

from payments.models import LedgerLine  # noqa: E402
from reservations.local_days import LocalDays  # noqa: E402
from reservations.reports.month_end import build_report  # noqa: E402
from reservations.reports.selection import ReportSelection  # noqa: E402
from tests.bench.servers import get_cpu_seconds  # noqa: E402


def measure(centers: frozenset[int] | None) -> float:
    """The median processor time of the database; others use the machine too, and disturb clocks."""
    found = []
    for _ in range(5):
        before = get_cpu_seconds(pid)
        build_report(ReportSelection(month, centers))
        found.append(get_cpu_seconds(pid) - before)
    return statistics.median(found)


# The last month that is over.
latest = LedgerLine.objects.aggregate(day=Max("day"))["day"]
month = LocalDays.from_month(latest.replace(day=1) - dt.timedelta(days=1))
center = LedgerLine.objects.values_list("center", flat=True)[0]
with connection.cursor() as cursor:
    cursor.execute("SET max_parallel_workers_per_gather = 0")
    cursor.execute("SELECT pg_backend_pid()")
    [pid] = cursor.fetchone()
print(  # noqa: T201
    f"Month's end, {LedgerLine.objects.count():,} lines of the ledger: {measure(None):.2f} s of the"
    " database's processor time for all centers,"
    f" {measure(frozenset({center})):.2f} s for one center."
)
