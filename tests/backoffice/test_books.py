"""The accounts agree to the cent after random days of sales, changes, cancellations and refunds.

FAULTS=long runs a hundred days, BOOKS_SEED=7 other ones.
"""

import csv
import datetime as dt
import io
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models import F, QuerySet

from payments.models import LedgerLine, Payment, Refund
from payments.statements import DEFERRED, get_name
from reservations.local_days import LocalDays
from reservations.reports.month_end import CHANGE, measure_balances
from reservations.reports.month_end import DEFERRED as DEFERRED_KEY
from reservations.reports.selection import ReportSelection
from tests.backoffice.business import Business

pytestmark = pytest.mark.django_db

# Continuous integration installs it.
PROGRAM = shutil.which("hledger")
SEED = int(os.environ.get("BOOKS_SEED", "14"))
DAYS, ACTIONS_A_DAY = (100, 20) if os.environ.get("FAULTS") == "long" else (3, 14)


def test_books_agree_after_random_days_and_find_defects(tmp_path):
    business = Business(SEED)
    for _ in range(DAYS):
        business.run_day(ACTIONS_A_DAY)
        assert business.find_disagreements() == []
    if PROGRAM:
        compare_with_hledger(PROGRAM, tmp_path / "ledger.journal")

    assert "missed" in {each.status for each in business.books.values()}
    captured = Payment.objects.captured()
    cent = Decimal("0.01")
    assert captured.filter(is_by_link=True).exists()
    for rows, values in (
        (captured.filter(reservation__status="Confirmed", gateway="cash"), {"amount": cent}),
        (captured.filter(fee__gt=0), {"fee": cent}),
        (Refund.objects.filter(state="done"), {"amount": cent}),
        (captured.filter(gateway="terminal"), {"amount": 1}),
    ):
        with planted(rows, **{name: F(name) + more for name, more in values.items()}):
            assert "differ from the ledger" in find_all(business)
    with planted(captured.filter(received_at__isnull=False, gateway="account"), received_at=None):
        assert "differ from the ledger" in find_all(business)
    moved = captured.exclude(cash_center=F("reservation__room__center"))
    with planted(moved, cash_center=moved.earliest("pk").reservation.room.center):
        assert "differ from the ledger" in find_all(business)
    with planted(captured.filter(counts=True), counts=False):
        assert "differ from the ledger" in find_all(business)


def compare_with_hledger(program: str, path: Path) -> None:
    """Compare its balances by account, center and month with those of the month-end report."""
    call_command("export_ledger", str(path), format="hledger")
    subprocess.run([program, "-f", path, "check", "--strict"], check=True)
    arguments = ("balance", "--monthly", "--flat", "--no-total", "-O", "csv")
    table = subprocess.run(
        [program, "-f", path, *arguments], check=True, capture_output=True, text=True
    ).stdout
    [_, *months], *rows = csv.reader(io.StringIO(table))
    journal = defaultdict(
        Decimal,
        {
            (name, month): Decimal(cell.removesuffix(" USD"))
            for name, *cells in rows
            for month, cell in zip(months, cells, strict=True)
        },
    )
    centers = LedgerLine.objects.values_list("center", flat=True).distinct().order_by()
    for month, center in product(months, centers):
        period = LocalDays.from_month(dt.date.fromisoformat(f"{month}-01"))
        found = measure_balances(ReportSelection(period, frozenset({center})))
        for account, sums in found.items():
            name = get_name(account) if account != DEFERRED_KEY else DEFERRED
            assert journal.pop((f"{name}:Center-{center}", month), 0) == CHANGE.read(sums)
    assert not any(journal.values())


@contextmanager
def planted(rows: QuerySet, **values: object) -> Iterator[None]:
    """Give the first of the rows other values for as long as the block runs."""
    with transaction.atomic():
        first = rows.order_by("pk")[:1].get()
        assert rows.model.objects.filter(pk=first.pk).update(**values)
        yield
        transaction.set_rollback(True)


def find_all(business: Business) -> str:
    return "\n".join(business.find_disagreements())
