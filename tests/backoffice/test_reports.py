"""The pages of the reports, and their exported files."""

import csv
import datetime as dt
import io
from decimal import Decimal
from urllib.parse import urlencode

import pytest
from django.db import OperationalError
from openpyxl import load_workbook

from centers.models import Center
from reservations.models.status import Status
from reservations.reports import cube, selection, utilization
from reservations.reports.pages import REPORTS
from tests.factories_reservations import (
    HOUR,
    PartnerFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_room,
    post_sale,
)

NOW = dt.datetime(2027, 3, 15, 15, tzinfo=dt.UTC)
PAGES = "/admin/reservations/reservation/reports/"

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def address(name="revenue", **query):
    return f"{PAGES}{name}/?{urlencode(query, doseq=True)}"


def sold(room, total="75.00", **fields):
    reservation = ReservationFactory(
        **{
            "room": room,
            "start": NOW - HOUR,
            "status": Status.COMPLETED,
            "total_cost": Decimal(total),
            "booked_at": NOW,
            **fields,
        }
    )
    return post_sale(reservation, now=NOW)


def named(room, name):
    Center.objects.filter(pk=room.center_id).update(name=name)
    return room


def rows_of(answer):
    return list(csv.reader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))


def test_reports_redirect_keeps_query_and_unknown_ones_are_not_found(office):
    assert office.get(PAGES)["Location"] == f"{PAGES}revenue/"
    query = f"{PAGES}?since=2027-01-01&center=1&center=2"
    assert office.get(query)["Location"] == f"{PAGES}revenue/?since=2027-01-01&center=1&center=2"
    assert office.get(address("revenues")).status_code == 404


@pytest.mark.parametrize("name", REPORTS)
def test_report_has_page_and_files_with_and_without_data(office, name):
    assert office.get(address(name)).status_code == 200
    sold(make_room(), partner=PartnerFactory(), promo_code=PromoCodeFactory())
    full = office.get(address(name))

    assert load_workbook(io.BytesIO(office.get(address(name, format="xlsx")).getvalue()))
    tables = full.context["report"].tables
    assert len({table.key for table in tables}) == len(tables)
    for table in (tables[0], tables[-1]):
        found = rows_of(office.get(address(name, format="csv", table=table.key)))
        assert found[0] == [column.name for column in table.columns]
        assert len(found) == 1 + len(table.rows) + (table.total is not None)


def test_report_default_period_is_current_month(office):
    room = make_room()
    sold(room)
    sold(room, "1.00", start=NOW - 31 * 24 * HOUR)

    page = office.get(address())

    assert page.context["report"].figures[0].value == "$75.00"
    assert 'value="2027-03-01"' in page.text
    assert 'value="2027-03-31"' in page.text
    february = office.get(address(since="2027-02-01"))
    assert february.context["report"].figures[0].value == "$1.00"
    until = office.get(address(until="2027-02-12"))
    assert until.context["report"].figures[0].value == "$1.00"


def test_report_is_limited_to_selected_centers_and_room_types(office):
    here, there = make_room(), make_room()
    sold(here, "1.00")
    sold(there, "2.00")

    def total(**query):
        return office.get(address(**query)).context["report"].figures[0].value

    assert total() == "$3.00"
    assert total(center=[here.center_id]) == "$1.00"
    assert total(center=[here.center_id, there.center_id]) == "$3.00"
    assert total(type=there.resource_type_id) == "$2.00"
    assert total(type=there.resource_type_id, center=here.center_id) == "$0.00"


def tired(_):
    raise OperationalError("canceling statement due to statement timeout")


DAYS = ("x", "\x00", "2027-02-30", "\uff19")
IDS = ("x", "99999999999999999999", "\x00", "\uff19", "0")
NONSENSE = {"since": DAYS, "until": DAYS[:1], "center": IDS, "type": IDS, "format": ("x", "'")}


def test_report_that_cannot_be_made_says_why(office, monkeypatch):
    sold(make_room())
    monkeypatch.setattr(selection, "MAX_GROUPS", 0)
    monkeypatch.setattr(utilization, "MAX_ROOMS", 0)
    monkeypatch.setitem(REPORTS, "cancellations", ("Cancellations", tired))
    for query, words in (
        *(({name: text}, 'role="alert"') for name, texts in NONSENSE.items() for text in texts),
        ({"since": "2027-03-02", "until": "2027-03-01"}, "The period ends before it begins."),
        ({"since": "2026-01-01", "until": "2027-03-01"}, "A report covers at most 400 days."),
        ({"since": "9999-12-01"}, "Choose a day from 2000 to 2100"),
        ({"center": "4711"}, "There is no center 4711 whose reports you may see."),
        ({"type": "4711"}, "There is no room type 4711."),
        ({"center": [*range(1, 202)]}, "Choose at most 200."),
        ({}, "Choose"),
        ({"name": "utilization"}, "Choose"),
        ({"name": "cancellations"}, "This takes too long"),
    ):
        answer = office.get(address(**query))

        assert answer.status_code == 400, query
        assert words in answer.text, query
        assert answer.context["report"] is None, query
    # What is empty is not asked for, nor is a table without a format.
    monkeypatch.undo()
    assert office.get(address(**dict.fromkeys([*NONSENSE, "table"], ""))).status_code == 200
    for query in ({"format": "pdf"}, {"format": "csv", "table": "nothing"}):
        assert "The format is csv, with the name of a" in office.get(address(**query)).text
    assert office.get(address(table="x")).status_code == 200


@pytest.mark.parametrize("name", ["revenue", "cancellations", "discounts"])
def test_report_many_centers_has_no_center_rows(office, name, monkeypatch):
    for _ in range(2):
        sold(make_room(), promo_code=PromoCodeFactory())
    each = office.get(address(name)).context["report"]
    monkeypatch.setattr(selection, "MAX_CENTERS", 1)

    together = office.get(address(name)).context["report"]

    assert together.figures == each.figures
    assert next(table.rows for table in together.tables if table.key == "center") == []


def test_report_long_table_is_complete_in_files_only(office, monkeypatch):
    monkeypatch.setattr(cube, "MAX_ROWS_ON_PAGE", 1)
    for _ in range(2):
        sold(make_room())

    assert "and 1 more in the exported files." in office.get(address()).text
    assert len(rows_of(office.get(address(format="csv", table="center")))) == 1 + 2 + 1


def test_csv_export_has_plain_numbers_shares_and_months_and_no_formula(office):
    room = named(make_room(), '=HYPERLINK("http://example.com")')
    sold(room, "1234.50", start=NOW - HOUR, end=NOW)

    answer = office.get(address(format="csv", table="center"))

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="2027-03-revenue-center.csv"'
    header, row, total = rows_of(answer)
    assert header[:3] == ["Center", "Bookings", "Rooms"]
    assert row[:3] == ['\'=HYPERLINK("http://example.com")', "1", "1234.50"]
    assert total[:3] == ["Total", "1", "1234.50"]
    query = {"center": room.center_id, "format": "csv"}
    header, row, _ = rows_of(office.get(address("utilization", **query, table="center")))
    # 31 days of 10 hours; the meeting is within opening hours.
    assert row[header.index("Utilization")] == "0.0032"
    assert row[header.index("Hours open")] == "310.0000"
    months = rows_of(office.get(address("cancellations", **query, table="month")))
    assert months[1][0] == "2027-03"


def test_xlsx_export_has_a_sheet_for_each_table(office):
    sold(named(make_room(), "=1+1"), "1234.50")

    answer = office.get(address(format="xlsx"))

    assert answer["Content-Disposition"] == 'attachment; filename="2027-03-revenue.xlsx"'
    book = load_workbook(io.BytesIO(answer.getvalue()))
    assert book.sheetnames == ["About", "By month", "By center", "By source"]
    cells = list(book["By center"].iter_rows())
    assert [cell[0].value for cell in cells] == ["Center", "'=1+1", "Total"]
    assert {cell.data_type for row in cells for cell in row} == {"s", "n"}
    assert (cells[1][2].value, cells[1][2].number_format) == (1234.5, "#,##0.00")


@pytest.mark.parametrize("name", REPORTS)
def test_report_manager_sees_own_center_only(client, staff, name):
    here, there = make_room(), named(make_room(), "Elsewhere")
    for room in (here, there):
        sold(room, promo_code=PromoCodeFactory())
        sold(room, status=Status.CANCELLED, cancelled_at=NOW)
    client.force_login(staff("Manager", here.center))

    # A file has what the page has.
    page = client.get(address(name))

    assert page.status_code == 200
    assert "Elsewhere" not in page.text
    assert client.get(address(name, center=there.center_id)).status_code == 400
