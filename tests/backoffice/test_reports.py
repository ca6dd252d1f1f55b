"""The pages of the reports, and their exported files."""

import csv
import datetime as dt
import io
from decimal import Decimal
from urllib.parse import urlencode

import pytest
import time_machine
from django.db import OperationalError
from openpyxl import load_workbook

from centers.models import Center
from reservations.admin.reports import selection, utilization
from reservations.admin.reports.pages import REPORTS
from reservations.models.status import Status
from tests.backoffice.counting import queries_of
from tests.backoffice.many import many
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    PartnerFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_room,
)

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2027, 3, 15, 15, tzinfo=dt.UTC)
PAGES = "/admin/reservations/reservation/reports/"


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


def address(name="revenue", **query):
    return f"{PAGES}{name}/?{urlencode(query, doseq=True)}"


def sold(room, total="75.00", **fields):
    return ReservationFactory(
        **{
            "room": room,
            "start": NOW - HOUR,
            "status": Status.COMPLETED,
            "total_cost": Decimal(total),
            "booked_at": NOW,
            **fields,
        }
    )


def named(room, name):
    Center.objects.filter(pk=room.center_id).update(name=name)
    return room


def rows_of(answer):
    return list(csv.reader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))


@pytest.fixture
def boss(client):
    client.force_login(AdministratorFactory())
    return client


# --- Pages --------------------------------------------------------------------------------------


def test_reports_redirect_keeps_query(boss):
    assert boss.get(PAGES)["Location"] == f"{PAGES}revenue/"
    query = f"{PAGES}?since=2027-01-01&center=1&center=2"
    assert boss.get(query)["Location"] == f"{PAGES}revenue/?since=2027-01-01&center=1&center=2"


@pytest.mark.parametrize("name", REPORTS)
def test_report_has_page_and_files_with_and_without_data(boss, name):
    empty = boss.get(address(name))
    sold(make_room(), partner=PartnerFactory(), promo_code=PromoCodeFactory())
    full = boss.get(address(name))

    assert empty.status_code == full.status_code == 200
    assert load_workbook(io.BytesIO(boss.get(address(name, format="xlsx")).getvalue()))
    for table in full.context["report"].tables:
        found = rows_of(boss.get(address(name, format="csv", table=table.key)))
        assert found[0] == [column.name for column in table.columns]
        assert len(found) == 1 + len(table.rows) + (table.total is not None)


def test_report_default_period_is_current_month(boss):
    room = make_room()
    sold(room)
    sold(room, "1.00", start=NOW - 31 * 24 * HOUR)

    page = boss.get(address())

    assert page.context["report"].figures[0].value == "$75.00"
    assert 'value="2027-03-01"' in page.content.decode()
    assert 'value="2027-03-31"' in page.content.decode()
    february = boss.get(address(since="2027-02-01"))
    assert february.context["report"].figures[0].value == "$1.00"
    until = boss.get(address(until="2027-02-12"))
    assert until.context["report"].figures[0].value == "$1.00"


def test_report_links_keep_the_selection(boss):
    room = make_room()
    sold(room)
    query = {"since": "2027-03-01", "until": "2027-03-31", "center": room.center_id}

    page = boss.get(address(**query)).content.decode()

    kept = urlencode(query).replace("&", "&amp;")
    assert f'href="{PAGES}utilization/?{kept}"' in page
    assert f'href="?{kept}&amp;format=xlsx"' in page
    assert f'href="?{kept}&amp;format=csv&amp;table=center"' in page
    assert f"?since=2027-02-01&amp;until=2027-02-28&amp;center={room.center_id}" in page


def test_report_is_limited_to_selected_centers_and_room_types(boss):
    here, there = make_room(), make_room()
    sold(here, "1.00")
    sold(there, "2.00")

    def total(**query):
        return boss.get(address(**query)).context["report"].figures[0].value

    assert total() == "$3.00"
    assert total(center=[here.center_id]) == "$1.00"
    assert total(center=[here.center_id, there.center_id]) == "$3.00"
    assert total(type=there.resource_type_id) == "$2.00"
    assert total(type=there.resource_type_id, center=here.center_id) == "$0.00"


NONSENSE = [
    "",
    "x",
    "-1",
    "99999999999999999999",
    "1 OR 1=1",
    "\x00",
    "2027-02-30",
    "\uff19",
    "'",
    "0",
]


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("parameter", ["since", "until", "center", "type", "format", "table"])
def test_report_invalid_query_shows_error(boss, name, parameter):
    for text in NONSENSE:
        answer = boss.get(address(name, **{parameter: text}))

        is_empty = text == ""
        is_alone = parameter == "table"  # without a format it asks for nothing
        assert answer.status_code == (200 if is_empty or is_alone else 400), text
        assert is_empty or is_alone or 'role="alert"' in answer.content.decode()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"since": "2027-03-02", "until": "2027-03-01"}, "The period ends before it begins."),
        ({"since": "2026-01-01", "until": "2027-03-01"}, "A report covers at most 400 days."),
        ({"since": "0001-01-01", "until": "0001-01-02"}, "Choose days from 2000 to 2100."),
        ({"since": "9999-12-01"}, "Choose days from 2000 to 2100."),
        ({"center": "4711"}, "There is no center 4711 whose reports you may see."),
        ({"type": "4711"}, "There is no room type 4711."),
        ({"center": [*range(1, 202)]}, "Choose at most 200."),
        ({"format": "pdf"}, "The format is csv, with the name of a table, or xlsx."),
        ({"format": "csv", "table": "nothing"}, "The format is csv"),
    ],
)
def test_report_invalid_filter_shows_message(boss, query, words):
    answer = boss.get(address(**query))

    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert answer.context["report"] is None


def test_report_too_large_shows_message(boss, monkeypatch):
    sold(make_room())
    monkeypatch.setattr(selection, "MAX_GROUPS", 0)
    monkeypatch.setattr(utilization, "MAX_ROOMS", 0)

    for name in ("revenue", "utilization", "cancellations"):
        answer = boss.get(address(name, format="csv", table="center"))
        assert answer.status_code == 400
        assert "Choose" in answer.content.decode()


@pytest.mark.parametrize("name", ["revenue", "cancellations", "discounts"])
def test_report_many_centers_has_no_center_rows(boss, name, monkeypatch):
    for _ in range(2):
        sold(make_room(), promo_code=PromoCodeFactory())
    each = boss.get(address(name)).context["report"]
    monkeypatch.setattr(selection, "MAX_CENTERS", 1)

    answer = boss.get(address(name))

    together = answer.context["report"]
    assert together.figures == each.figures
    tables = {table.key: table for table in together.tables}
    assert tables["center"].rows == []
    assert "choose some to see a line of each" in answer.content.decode()
    assert tables["month"].rows == next(t.rows for t in each.tables if t.key == "month")
    long = boss.get(address(name, since="2027-01-01", until="2027-12-31"))
    assert long.status_code == 400
    assert "or at most 100 days" in long.content.decode()


def test_report_statement_timeout_shows_message(boss, monkeypatch):
    def tired(_):
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setitem(REPORTS, "revenue", ("Revenue", tired))

    answer = boss.get(address())

    assert answer.status_code == 400
    assert "This takes too long" in answer.content.decode()


def test_report_long_table_is_complete_in_files_only(boss):
    center = make_room().center
    for _ in range(55):
        sold(make_room())

    page = boss.get(address())

    assert center.name in page.content.decode()
    assert "and 5 more in the exported files." in page.content.decode()
    assert len(rows_of(boss.get(address(format="csv", table="center")))) == 1 + 55 + 1


@pytest.mark.parametrize("name", ["nothing", "revenues"])
def test_unknown_report_is_not_found(boss, name):
    assert boss.get(address(name)).status_code == 404


# --- Files --------------------------------------------------------------------------------------


def test_csv_export_has_plain_numbers_and_no_formula(boss):
    named(make_room(), "Quiet")
    sold(named(make_room(), '=HYPERLINK("http://example.com")'), "1234.50")

    answer = boss.get(address(format="csv", table="center"))

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="2027-03-15-revenue-center.csv"'
    header, row, total = rows_of(answer)
    assert header[:3] == ["Center", "Bookings", "Billed"]
    assert row[:3] == ['\'=HYPERLINK("http://example.com")', "1", "1234.50"]
    assert total[:3] == ["Total", "1", "1234.50"]


def test_csv_export_formats_shares_and_months(boss):
    room = make_room()
    sold(room, start=NOW - HOUR, end=NOW)

    header, row, _ = rows_of(boss.get(address("utilization", format="csv", table="center")))
    months = rows_of(boss.get(address("cancellations", format="csv", table="month")))

    # 31 days of 10 hours; the meeting is within opening hours.
    assert dict(zip(header, row, strict=True)) == {
        "Center": "Glenarm",
        "Rooms": "1",
        "Utilization": "0.0032",
        "Hours sold": "1.0000",
        "Hours open": "310.0000",
        "Hours sold outside": "0.0000",
        "Bookings": "1",
    }
    assert months[1][0] == "2027-03"
    assert boss.get(address("cancellations", since="2027-05-01")).status_code == 200


def test_xlsx_export_has_a_sheet_for_each_table(boss):
    sold(named(make_room(), "=1+1"), "1234.50")
    sold(named(make_room(), "+49 Street"), "1.00")

    answer = boss.get(address(format="xlsx"))

    assert answer["Content-Disposition"] == 'attachment; filename="2027-03-15-revenue.xlsx"'
    book = load_workbook(io.BytesIO(answer.getvalue()))
    assert book.sheetnames == ["About", "By month", "By center", "By source"]
    about = {row[0].value: row[1].value for row in book["About"].iter_rows()}
    assert about["From"] == "2027-03-01"
    assert about["What is counted"].startswith("Meetings in USD")
    cells = list(book["By center"].iter_rows())
    assert [cell[0].value for cell in cells] == ["Center", "'=1+1", "'+49 Street", "Total"]
    assert {cell.data_type for row in cells for cell in row} == {"s", "n"}
    assert cells[1][2].value == 1234.5
    assert cells[1][2].number_format == "#,##0.00"


# --- Who ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["Viewer", "Desk"])
@pytest.mark.parametrize("query", [{}, {"format": "xlsx"}, {"format": "csv", "table": "center"}])
def test_report_without_permission_is_refused(client, staff, role, query):
    room = make_room()
    for user in (staff(role, room.center), staff(role)):
        client.force_login(user)
        for name in REPORTS:
            assert client.get(address(name, **query)).status_code == 403


def test_report_signed_in_customer_is_redirected(client):
    client.force_login(UserFactory())

    assert client.get(address()).status_code == 302


@pytest.mark.parametrize("name", REPORTS)
def test_report_manager_sees_own_center_only(client, staff, name):
    here, there = make_room(), named(make_room(), "Elsewhere")
    for room in (here, there):
        sold(room, promo_code=PromoCodeFactory())
        sold(room, status=Status.CANCELLED, cancelled_at=NOW)
    client.force_login(staff("Manager", here.center))

    page = client.get(address(name))
    book = client.get(address(name, format="xlsx"))

    assert page.status_code == 200
    assert "Elsewhere" not in page.content.decode()
    sheets = load_workbook(io.BytesIO(book.getvalue())).worksheets
    values = {cell for sheet in sheets for row in sheet.values for cell in row}
    assert "Elsewhere" not in values
    refused = client.get(address(name, center=there.center_id))
    assert refused.status_code == 400
    assert "whose reports you may see" in refused.content.decode()


def test_report_accountant_sees_all_centers(client, staff):
    sold(make_room(), "1.00")
    sold(make_room(), "2.00")
    client.force_login(staff("Accountant"))

    assert client.get(address()).context["report"].figures[0].value == "$3.00"


# --- Many ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTS)
def test_report_query_count_is_constant(boss, name):
    room, user = make_room(), UserFactory()
    fields = {"partner": PartnerFactory(), "promo_code": PromoCodeFactory()}
    many(room, user, 20, start=NOW, **fields)
    few = queries_of(boss, address(name))
    many(room, user, 180, start=NOW + 24 * HOUR, **fields)

    assert queries_of(boss, address(name)) == few < 25
