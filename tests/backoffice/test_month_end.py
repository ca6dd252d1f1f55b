"""Month's end: the balances of the accounts, from income to cash, and what is owed (B18)."""

import datetime as dt

import pytest
from django.urls import reverse

from payments.ledger.accounts import MONEY_ACCOUNTS, EventKind
from reservations.local_days import LocalDays
from reservations.models.status import Status
from reservations.reports import month_end
from reservations.reports.selection import ReportSelection
from roombook.money import format_amount
from tests.backoffice.test_figures_of_reports import post_bill, post_line
from tests.factories_reservations import (
    NOW,
    PaymentFactory,
    ReservationFactory,
    make_room,
)

pytestmark = pytest.mark.django_db

MARCH = LocalDays(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
FEBRUARY_DAY, MARCH_DAY, APRIL_DAY = (dt.date(2027, month, 10) for month in (2, 3, 4))


def build(period=MARCH, **selection):
    """The report as a dictionary of tables."""
    report = month_end.build_report(ReportSelection(period, **selection))
    return {table.key: table for table in report.tables}


def get_lines(tables):
    """The amounts from income to cash that are not 0, by the words of their lines."""
    amounts = [*tables["difference"].rows, tables["difference"].total]
    return {str(words): str(amount) for words, amount in amounts if amount}


def pay(amount, day, *, account="gateway", **fields):
    return post_line(day=day, kind=EventKind.PAID, **{account: amount}, **fields)


def test_income_and_cash_of_other_months_are_explained():
    post_bill(-1, 0, day=FEBRUARY_DAY, meeting_day=MARCH_DAY)
    post_bill(-2, 0, day=MARCH.first, meeting_day=MARCH.last)
    post_bill(-4, 0, day=MARCH_DAY, meeting_day=APRIL_DAY)
    post_bill(-8, 0, day=FEBRUARY_DAY, meeting_day=APRIL_DAY)
    post_bill(-16, -1, day=MARCH_DAY, meeting_day=MARCH_DAY)
    pay(32, MARCH_DAY)
    pay(64, FEBRUARY_DAY)
    post_line(day=MARCH_DAY, refunds_payable=-5)
    post_line(day=MARCH_DAY, kind=EventKind.RETURNED, cash=-2, refunds_payable=2)
    post_line(day=MARCH_DAY, kind=EventKind.FEES, gateway=-1, gateway_fees=1)
    post_line(day=MARCH_DAY, kind=EventKind.DISPUTE, gateway=-3, disputes_lost=3)

    tables = build()

    assert get_lines(tables) == {
        "Income of the period, net of tax": "19.00",
        # 23 were billed in March, 5 promised back, and 32 came in.
        "Receivables: change": "4.00",
        # 1 from February is earned, and 4 are for April.
        "Deferred income and tax: change": "3.00",
        "Refunds payable: change": "3.00",
        "Tax payable: change": "1.00",
        "Fees of the gateway": "-1.00",
        "Disputes lost": "-3.00",
        "Cash of the period": "26.00",
    }


def test_nothing_of_a_month_that_is_over_changes_afterwards():
    booking = ReservationFactory()
    post_bill(reservation=booking, day=FEBRUARY_DAY, meeting_day=MARCH_DAY)
    before = [table.rows for table in build().values()]

    post_line(reservation=booking, day=APRIL_DAY, meeting_day=MARCH_DAY, adjustments=5)
    pay(50, APRIL_DAY, reservation=booking)

    assert [table.rows for table in build().values()] == before


def test_cash_is_listed_by_day_center_and_way():
    here, there = (ReservationFactory(room=make_room()) for _ in range(2))
    pay(4, MARCH_DAY, reservation=here)
    pay(1, MARCH_DAY, reservation=here, account="cash")
    pay(2, APRIL_DAY, reservation=here)
    post_line(reservation=there, day=MARCH_DAY, kind=EventKind.RECEIVED, bank=8)
    post_line(reservation=here, day=MARCH_DAY, kind=EventKind.RETURNED, gateway=-3)
    disputed = {"gateway": -21, "gateway_fees": 15, "disputes_lost": 6}
    post_line(reservation=here, day=MARCH_DAY, kind=EventKind.DISPUTE, **disputed)

    tables = build()

    rows = [(*map(str, row[:3]), *row[3:]) for row in tables["cash"].rows]
    names = [each.room.center.name for each in (there, here, here)]
    assert sorted(rows, key=lambda row: row[2]) == [
        (f"{MARCH_DAY}", names[0], "Bank", 1, 8, 0, 0, 0, 8),
        (f"{MARCH_DAY}", names[1], "Card", 1, 4, 3, 6, 15, -20),
        (f"{MARCH_DAY}", names[2], "Cash", 1, 1, 0, 0, 0, 1),
    ]
    for key in ("way", "day", "center", "cash"):
        assert tables[key].total[-1] == -11
        assert sum(row[-1] for row in tables[key].rows) == -11
    assert set(month_end.WAYS) == MONEY_ACCOUNTS


def test_payments_whose_fees_are_not_known_yet_are_counted_until_the_period_ends():
    here, there = make_room().center, make_room().center
    # The last evening of March is in April in UTC.
    evening = dt.datetime(2027, 3, 31, 20, tzinfo=here.zone)
    for at, center, due in (
        *((NOW, here, NOW), (evening, here, NOW), (NOW, here, None)),
        *((NOW, there, NOW), (NOW + dt.timedelta(days=40), here, NOW)),
    ):
        PaymentFactory(cash_center=center, at=at, amount=1, fees_due_at=due)

    note = build(MARCH, centers=frozenset({here.pk}))["way"].note
    assert note == "Payments whose fees the gateway has not named yet: 2."
    assert build(LocalDays.from_month(FEBRUARY_DAY))["way"].note == ""


def test_what_is_owed_is_listed_by_age():
    for days, amount in ((0, 1), (30, 2), (31, 4), (61, 8), (200, 16)):
        post_bill(-amount, 0, day=MARCH.last - dt.timedelta(days=days), meeting_day=APRIL_DAY)
    settled = ReservationFactory()
    post_bill(-100, 0, reservation=settled, day=FEBRUARY_DAY, meeting_day=APRIL_DAY)
    pay(100, MARCH_DAY, reservation=settled)
    post_line(day=MARCH_DAY, refunds_payable=-32, gateway=32)
    reduced, last = ReservationFactory(), MARCH.last
    post_bill(-65, 0, reservation=reduced, day=last - dt.timedelta(days=90), meeting_day=last)
    post_line(reservation=reduced, day=last, meeting_day=last, adjustments=1)
    pay(128, MARCH_DAY, reservation=ReservationFactory(status=Status.PENDING))

    rows = [[str(cell) for cell in row] for row in build()["age"].rows]

    assert rows == [
        ["Receivables", "3.00", "4.00", "72.00", "16.00", "-128.00", "-33.00"],
        ["Refunds payable", "32.00", "0.00", "0.00", "0.00", "0.00", "32.00"],
    ]


def test_each_balance_opens_the_lines_that_it_adds_up_and_a_line_its_reservation(office):
    pay(10, FEBRUARY_DAY)
    pay(20, MARCH_DAY)
    pay(40, MARCH_DAY, account="cash")
    post_bill(-8, 0, day=MARCH_DAY, meeting_day=MARCH_DAY)
    post_bill(-16, 0, day=MARCH_DAY, meeting_day=APRIL_DAY)
    table = build()["account"]
    period = {str(member): table.get_links(member) for (member, *_), _ in table.found}
    shown = {}
    for member, _, change, closing in table.rows:
        name = str(member)
        # What was deferred at another time has no lines of its own.
        is_deferred = name == "Deferred income and tax"
        figures = (closing if is_deferred else change, closing)
        for url, figure in zip(period[name], figures, strict=True):
            page = office.get(url)
            shown[name] = page.context["ledger_sum"]
            assert shown[name] == format_amount(figure), (name, url)
            assert f"add up to <strong>{shown[name]}</strong>" in page.text
    assert shown["Gateway"] == "$30.00"
    deferred, _ = period["Deferred income and tax"]
    assert [line.room for line in office.get(deferred).context["cl"].result_list] == [-1600]
    [line] = office.get(period["Cash"][0]).context["cl"].result_list
    page = office.get(period["Cash"][0]).text
    assert reverse("admin:reservations_reservation_change", args=[line.reservation_id]) in page


def test_cash_of_each_row_opens_its_lines(office):
    here, there = make_room(), make_room()
    pay(10, MARCH_DAY, center=here.center)
    post_line(day=MARCH_DAY, kind=EventKind.FEES, gateway=-1, gateway_fees=1, center=here.center)
    pay(20, MARCH_DAY, center=here.center, account="cash")
    pay(40, MARCH_DAY, center=there.center)
    pay(80, MARCH.last, center=here.center)
    pay(160, APRIL_DAY, center=here.center)
    tables = build()

    sums = {}
    for key in ("way", "day", "center", "cash"):
        for row, (members, _) in zip(tables[key].rows, tables[key].found, strict=True):
            url, _ = tables[key].get_links(*members)
            assert office.get(url).context["ledger_sum"] == format_amount(row[-1]), (key, row)
            sums.setdefault(key, []).append(row[-1])
    table = build(centers=frozenset({there.center_id}))["way"]
    url, _ = table.get_links(*table.found[0][0])
    assert [line.gateway for line in office.get(url).context["cl"].result_list] == [4000]
    everything = office.get(reverse("admin:payments_ledgerline_changelist")).text
    assert "add up to" not in everything
    refund = PaymentFactory(amount=9).refunds.create(amount=9, created_at=NOW)
    line = post_line(day=MARCH_DAY, kind=EventKind.RETURNED, cause=f"refund {refund.pk}")
    page = office.get(reverse("admin:payments_ledgerline_change", args=[line.pk])).text
    assert f'{reverse("admin:payments_refund_change", args=[refund.pk])}"' in page
    assert {key: sorted(found) for key, found in sums.items()} == {
        "way": [20, 129],
        "day": [69, 80],
        "center": [40, 109],
        "cash": [9, 20, 40, 80],
    }
