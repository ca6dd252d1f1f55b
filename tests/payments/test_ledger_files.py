"""The ledger as files, and as of an earlier time."""

import csv
import datetime as dt
import io
import re
import shutil
import subprocess
from collections import defaultdict
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Sum
from openpyxl import load_workbook

from payments.ledger.accounts import Account
from payments.models import LedgerLine
from payments.statements import COLUMNS, get_name
from roombook.money import from_hundredths
from tests.factories_reservations import HOUR, NOW
from tests.payments.test_ledger import SCENES, Scene

pytestmark = pytest.mark.django_db

PROGRAM = shutil.which("hledger")


@pytest.fixture
def story():
    """Two reservations of other examples, and one that is moved to another center."""
    SCENES["A dispute is lost, and then won"]()
    SCENES["On account, reduced, received, reduced again, and returned"]()
    return SCENES["Moved to another center, and cancelled with a refund of 20.00"]()


def export(path, name, *options):
    call_command("export_ledger", str(path), *options, format=name)
    return path


def sum_up():
    """The balance of each account of a journal."""
    balances = defaultdict(Decimal)
    for line in LedgerLine.objects.all():
        for account, amount in line.amounts:
            balances[f"{get_name(account)}:Center-{line.center_id}"] += from_hundredths(amount)
    return {name: amount for name, amount in balances.items() if amount}


@pytest.mark.skipif(PROGRAM is None, reason="hledger is not installed: apt-get install hledger")
def test_hledger_accepts_the_journal_and_has_the_same_balances(story, tmp_path):
    path = export(tmp_path / "ledger.journal", "hledger")

    subprocess.run([PROGRAM, "-f", path, "check", "--strict"], check=True)
    table = subprocess.run(
        [PROGRAM, "-f", path, "balance", "--flat", "--no-total", "-O", "csv"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = dict(list(csv.reader(io.StringIO(table)))[1:])
    assert found == {name: f"{amount:.2f} USD" for name, amount in sum_up().items()}


def test_journal_of_beancount_opens_each_account_once_and_each_transaction_adds_up(story, tmp_path):
    text = export(tmp_path / "ledger.beancount", "beancount").read_text()

    opened = [line.split()[2] for line in text.splitlines() if " open " in line]
    assert len(opened) == len({*opened})
    transactions = [block for block in text.split("\n\n") if " * " in block]
    for block in transactions:
        postings = [row.split() for row in block.splitlines() if row.startswith("    ")]
        assert sum(Decimal(amount) for _, amount, _ in postings) == 0
        assert {name for name, *_ in postings} <= {*opened}


def test_spreadsheets_have_a_row_for_each_line(story, tmp_path):
    text = export(tmp_path / "ledger.csv", "csv").read_text(encoding="utf-8-sig")
    rows = list(csv.reader(text.splitlines()))
    book = load_workbook(export(tmp_path / "ledger.xlsx", "xlsx"))

    count = LedgerLine.objects.count()
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 1 + count == book["Ledger"].max_row
    accounts = slice(-len(Account), None)
    assert all(sum(Decimal(cell) for cell in row[accounts] if cell) == 0 for row in rows[1:])


def test_export_is_limited_to_days_and_a_center(story, tmp_path):
    [boulder] = {line.center_id for line in LedgerLine.objects.filter(center__name="Boulder")}
    only = export(tmp_path / "1.csv", "csv", f"--center={boulder}").read_text()
    none = export(tmp_path / "2.csv", "csv", "--from=2027-04-01").read_text()
    first = export(tmp_path / "3.csv", "csv", "--to=2027-03-01").read_text()

    assert {row["Center"] for row in csv.DictReader(only.splitlines())} == {"Boulder"}
    assert len(none.splitlines()) == 1
    assert {row["Day"] for row in csv.DictReader(first.splitlines())} == {"2027-03-01"}


def test_journal_of_a_month_has_the_income_that_counts_in_it(story, tmp_path):
    before = export(tmp_path / "1", "hledger", "--to=2027-03-07").read_text()
    month = export(tmp_path / "2", "hledger", "--from=2027-03-08", "--to=2027-03-08").read_text()

    assert "Deferred" in before
    assert "Income" not in before
    assert {*re.findall(r"(?m)^2027-\S+", month)} == {"2027-03-08"}
    counts = LedgerLine.objects.filter(recognized_on=dt.date(2027, 3, 8))
    amounts = re.findall(r"Income:Room-income:\S+ +(\S+) USD", month)
    assert sum(map(Decimal, amounts)) == from_hundredths(counts.aggregate(Sum("room"))["room__sum"])
    assert not LedgerLine.objects.filter(meeting_day=None).exclude(recognized_on=None).exists()


def test_ledger_of_a_reservation_is_shown_as_of_an_earlier_time(capsys):
    story = Scene().book().adjust(-10)
    number = str(story.booking.pk)

    call_command("ledger", "--reservation", number, "--at", story.now.isoformat())
    printed = capsys.readouterr().out
    assert "Booked: Receivables $55.00, Tax payable -$5.00, Room income -$50.00" in printed
    assert "Bill: $44.00\nPaid: $44.00\nOwed: $0.00" in printed
    call_command("ledger", "--reservation", number, "--at", NOW.isoformat())
    assert "Bill: $55.00\nPaid: $55.00\nOwed: $0.00" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no line"):
        call_command("ledger", "--reservation", number, "--at", (NOW - HOUR).isoformat())
