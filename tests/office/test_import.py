"""Importing tables of rows: checked as a whole, previewed, written all or nothing."""

import datetime as dt
import io
import threading
import zipfile
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from auditlog.models import LogEntry
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from centers.models import Center, Closure, MeetingRoom, OpeningHours, Rate, ResourceType, Service
from reservations.models import Allowance, AllowanceEntry, PromoCode
from roombook.imports import files
from roombook.imports.files import BadFile
from roombook.imports.models import Upload
from roombook.imports.sheet import Allowed, Origin, Refused
from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceTypeFactory,
)
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.imports import NOON, Browser, check, counts, csv_of, errors_of, load, xlsx_of

pytestmark = pytest.mark.django_db

OMAHA = {
    "name": "Old Market",
    "street1": "1001 Howard Street",
    "city": "Omaha",
    "state": "Nebraska",
    "country": "USA",
    "latitude": "41.2565",
    "longitude": "-95.9345",
    "mon": "08:00-12:30, 14:00-24:00",
    "sun": "closed",
    "tax_rate": "5.5",
}


def told(problems):
    """Errors without their words."""
    return [(row, column) for row, column, _ in problems]


# --- Centers ------------------------------------------------------------------------------------


def test_a_center_is_added_as_saving_it_would():
    assert load("centers", csv_of(OMAHA)) == {"new": 1}

    center = Center.objects.get()
    assert (center.country, center.state) == ("US", "NE")
    assert center.time_zone_id == "America/Chicago"
    assert center.tax_rate == Decimal("5.500")
    assert center.x is not None
    assert "nebraska" in center.search_text
    assert Center.objects.containing(["omaha"]).get() == center
    hours = center.opening_hours.values_list("weekday", "opens", "closes")
    assert list(hours) == [(0, dt.time(8), dt.time(12, 30)), (0, dt.time(14), dt.time(0))]


def test_a_second_time_everything_is_unchanged():
    load("centers", csv_of(OMAHA))

    assert counts("centers", csv_of(OMAHA)) == {"unchanged": 1}


def test_a_center_is_found_by_its_id_and_renamed():
    center = CenterFactory(name="Before")

    assert load("centers", csv_of({"id": center.pk, "name": "After"})) == {"changed": 1}

    center.refresh_from_db()
    assert center.name == "After"
    assert center.name_folded == "after"


def test_landmarks_and_neighborhood_are_found_after_a_change():
    center = CenterFactory()
    LandmarkFactory(center=center, name="Aquarium")
    NeighborhoodFactory(name="LoDo", city="Denver", state="CO")

    load("centers", csv_of({"id": center.pk, "neighborhood": "LoDo, Denver, CO"}))

    center.refresh_from_db()
    assert {"aquarium", "lodo"} <= set(center.search_text.split("\n"))


def test_what_is_not_in_the_file_stays():
    center = CenterFactory(promo_text="Hello")

    load("centers", csv_of({"id": center.pk, "rank": "7"}))

    center.refresh_from_db()
    assert (center.rank, center.promo_text, center.city) == (7, "Hello", "Denver")


def test_an_empty_cell_empties():
    center = CenterFactory(promo_text="Hello")

    load("centers", csv_of({"id": center.pk, "promo_text": ""}))

    center.refresh_from_db()
    assert center.promo_text == ""


def test_hours_of_a_day_are_replaced_and_others_stay():
    center = CenterFactory()
    for weekday in (0, 1):
        OpeningHours.objects.create(
            center=center, weekday=weekday, opens=dt.time(9), closes=dt.time(17)
        )

    load("centers", csv_of({"id": center.pk, "mon": "closed"}))

    assert [hours.weekday for hours in center.opening_hours.all()] == [1]


def test_two_centers_of_one_name_need_their_ids():
    one, _ = CenterFactory(name="Twin"), CenterFactory(name="Twin")
    row = {"name": "Twin", "city": "Denver", "state": "CO", "rank": "1"}

    assert told(errors_of("centers", csv_of(row))) == [(2, "")]
    assert counts("centers", csv_of({"id": one.pk, **row})) == {"changed": 1}


# --- Errors of a row ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("name", ""),
        ("name", "x" * 256),
        ("name", "a\x00b"),
        ("promo_text", "y" * 40_000),
        ("country", "Atlantis"),
        ("latitude", "north"),
        ("latitude", "91"),
        ("time_zone", "Mars/Olympus"),
        ("neighborhood", "Nowhere"),
        ("mon", "nine to five"),
        ("mon", "17:00-09:00"),
        ("mon", "09:00-12:00, 11:00-13:00"),
        ("mon", "25:00-26:00"),
        ("is_active", "maybe"),
        ("is_active", ""),
        ("rank", "-1"),
        ("rank", "1.5"),
        ("rank", ""),
        ("rank", "9999999999"),
        ("tax_rate", "8.8125"),
        ("tax_rate", "101"),
        ("tax_rate", "8,81"),
        ("tax_rate", "NaN"),
    ],
)
def test_each_wrong_cell_is_told_by_row_and_column(column, cell):
    wrong = errors_of("centers", csv_of(OMAHA | {column: cell}))

    assert told(wrong) == [(2, column)]
    assert wrong[0][2].endswith(".")


def test_all_errors_of_all_rows_are_told():
    rows = [OMAHA | {"rank": "1"}, OMAHA | {"name": "B", "rank": "x", "mon": "y"}]

    assert told(errors_of("centers", csv_of(*rows))) == [(3, "mon"), (3, "rank")]


@pytest.mark.parametrize("cell", ["12.345", "12,50", "$12", "1e3", "-1", "99999999999", "free"])
def test_a_price_is_exact_or_refused(cell):
    center = CenterFactory()
    row = {"center_id": center.pk, "name": "Standard", "hourly": cell}

    assert told(errors_of("rates", csv_of(row))) == [(2, "hourly")]


def test_a_flat_rate_needs_its_price():
    row = {"center_id": CenterFactory().pk, "name": "Standard", "is_flat_rate": "true"}
    assert told(errors_of("rates", csv_of(row | {"flat_rate": ""}))) == [(2, "flat_rate")]


def test_a_price_of_nothing_is_to_be_read_twice():
    row = {"center_id": CenterFactory().pk, "name": "Standard", "hourly": "0", "full_day": ""}
    _, plan = check("rates", csv_of(row))

    assert [column for column, _ in plan.rows[0].notes] == ["hourly"]


def room(center, **fields):
    if not ResourceType.objects.filter(name="Board room").exists():
        ResourceTypeFactory(name="Board room")
    return {
        "center_id": center.pk,
        "name": "Aspen",
        "type": "Board room",
        "capacity": "8",
        **fields,
    }


def test_a_room_with_a_rate_of_its_center():
    rate = RateFactory(name="Standard")

    load("rooms", csv_of(room(rate.center, rate="standard")))

    assert MeetingRoom.objects.get().rate == rate


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"rate": "Elsewhere"}, "rate"),
        ({"type": "Swimming pool"}, "type"),
        ({"type": ""}, "type"),
        ({"type": "Coffee"}, "type"),
        ({"capacity": "0"}, "capacity"),
        ({"capacity": ""}, "capacity"),
        ({"grid_minutes": "2000"}, "grid_minutes"),
        ({"minimum_minutes": "60", "maximum_minutes": "30"}, "minimum_minutes"),
        ({"center": "Another"}, "center"),
    ],
)
def test_what_is_wrong_with_a_room(fields, column):
    RateFactory(name="Elsewhere")
    ServiceTypeFactory(name="Coffee")

    wrong = errors_of("rooms", csv_of(room(CenterFactory()) | fields))

    assert told(wrong) == [(2, column)]


def test_every_check_of_the_database_is_judged_before():
    """One that could only be judged by a query would fail loudly here."""
    from roombook.imports import constraints

    models = (Center, Rate, MeetingRoom, Service, Closure, PromoCode, Allowance)
    failed = [check.name for model in models for check, _ in constraints.violated(model())]

    assert failed == ["center_has_a_time_zone", "promo_code_is_percent_or_amount"]


def test_rows_of_one_key_are_refused():
    center = CenterFactory()
    row = room(center)

    assert told(errors_of("rooms", csv_of(row, row | {"name": "ASPEN"}))) == [(3, "name")]


def test_one_stored_row_twice_is_refused():
    stored = MeetingRoomFactory()
    rows = [{"id": stored.pk, "capacity": "8"}, {"id": stored.pk, "capacity": "9"}]

    assert told(errors_of("rooms", csv_of(*rows))) == [(3, "")]


def test_a_name_that_another_room_has_is_refused():
    one = MeetingRoomFactory(name="One")
    MeetingRoomFactory(name="Two", center=one.center)

    assert told(errors_of("rooms", csv_of({"id": one.pk, "name": "two"}))) == [(2, "name")]


def test_an_unknown_id_is_refused_and_an_empty_one_is_new():
    center = CenterFactory()

    assert told(errors_of("rooms", csv_of({"id": "999", **room(center)}))) == [(2, "id")]
    assert told(errors_of("rooms", csv_of({"id": "one", **room(center)}))) == [(2, "id")]
    assert load("rooms", csv_of({"id": "", **room(center)})) == {"new": 1}


def test_a_room_stays_at_its_center():
    stored, other = MeetingRoomFactory(), CenterFactory()
    row = {"id": stored.pk, "center_id": other.pk, "name": stored.name}

    assert told(errors_of("rooms", csv_of(row))) == [(2, "center")]


def test_a_center_by_name_where_only_one_is_called_so():
    CenterFactory(name="Loft")
    named = room(CenterFactory(name="Twin")) | {"center": "loft"}
    del named["center_id"]
    CenterFactory(name="Twin")

    assert counts("rooms", csv_of(named)) == {"new": 1}
    assert told(errors_of("rooms", csv_of(named | {"center": "Twin"}))) == [(2, "center")]
    assert told(errors_of("rooms", csv_of(named | {"center": ""}))) == [(2, "center")]


def test_services():
    center = CenterFactory()
    kind = ServiceTypeFactory()
    row = {"center_id": center.pk, "name": "Coffee", "type": kind.name, "needs_quantity": "yes"}

    assert load("services", csv_of(row)) == {"new": 1}
    assert Service.objects.get().needs_quantity is True
    assert counts("services", csv_of(row)) == {"unchanged": 1}


# --- Closures -----------------------------------------------------------------------------------


def closure(center, **fields):
    return {
        "center_id": center.pk,
        "room": "",
        "starts_at": "2027-12-24T12:00",
        "ends_at": "2027-12-27T00:00",
        "reason": "Holidays",
    } | fields


def test_a_closure_is_on_the_clock_of_its_center():
    center = CenterFactory()
    load("closures", csv_of(closure(center)))

    assert Closure.objects.get().starts_at == dt.datetime(2027, 12, 24, 19, tzinfo=dt.UTC)
    assert counts("closures", csv_of(closure(center))) == {"unchanged": 1}


def test_the_hour_that_the_clock_shows_twice_comes_back_with_its_offset():
    zone = ZoneInfo("America/Denver")
    stored = ClosureFactory(
        center=CenterFactory(),
        starts_at=dt.datetime(2027, 11, 7, 1, 30, tzinfo=zone, fold=1),
        ends_at=dt.datetime(2027, 11, 7, 9, tzinfo=zone),
    )
    sheet, _ = check("closures", csv_of(closure(stored.center)))
    text = "".join(sheet.csv())

    assert "2027-11-07T01:30-07:00" in text
    assert counts("closures", text.encode()) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"starts_at": "2027-03-14T02:30"}, "starts_at"),
        ({"starts_at": "12/24/2027"}, "starts_at"),
        ({"starts_at": "2027-12-24"}, "starts_at"),
        ({"ends_at": ""}, "ends_at"),
        ({"ends_at": "2027-12-24T12:00"}, "starts_at"),
        ({"room": "Nowhere"}, "room"),
    ],
)
def test_what_is_wrong_with_a_closure(fields, column):
    assert told(errors_of("closures", csv_of(closure(CenterFactory(), **fields)))) == [(2, column)]


# --- Promo codes and allowances -----------------------------------------------------------------


def test_a_promo_code_bound_to_centers_and_types():
    one, two = CenterFactory(), CenterFactory()
    kind = ResourceTypeFactory(name="Board; room")
    row = {
        "code": "summer",
        "percent": "12.5",
        "valid_until": "2027-08-31T23:59Z",
        "center_ids": f"{two.pk};{one.pk}",
        "room_types": '"Board; room"',
    }
    assert load("promo-codes", csv_of(row)) == {"new": 1}

    code = PromoCode.objects.get(code="SUMMER")
    assert set(code.centers.all()) == {one, two}
    assert list(code.room_types.all()) == [kind]
    assert code.valid_until == dt.datetime(2027, 8, 31, 23, 59, tzinfo=dt.UTC)
    assert counts("promo-codes", csv_of(row)) == {"unchanged": 1}
    assert load("promo-codes", csv_of(row | {"center_ids": one.pk})) == {"changed": 1}
    assert list(code.centers.all()) == [one]


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"percent": "10", "amount": "5.00"}, "percent"),
        ({"percent": "101", "amount": ""}, "percent"),
        ({"percent": "10", "center_ids": "999"}, "center_ids"),
        ({"percent": "10", "room_types": "Nothing"}, "room_types"),
        ({"percent": "10", "meeting_from": "2027-02-30"}, "meeting_from"),
        ({"percent": "10", "max_uses": "1"}, "max_uses"),
    ],
)
def test_what_is_wrong_with_a_promo_code(fields, column):
    PromoCodeFactory(code="TWICE", uses=2)

    assert told(errors_of("promo-codes", csv_of({"code": "twice"} | fields))) == [(2, column)]


def test_uses_counted_meanwhile_are_kept():
    code = PromoCodeFactory(code="BUSY", max_uses=9)
    sheet, plan = check("promo-codes", csv_of({"code": "BUSY", "description": "Now"}))
    PromoCode.objects.filter(pk=code.pk).update(uses=3)

    sheet.write(plan, Origin(file="x.csv", at=NOON))

    code.refresh_from_db()
    assert (code.uses, code.description) == (3, "Now")


def test_an_allowance_belongs_to_an_account():
    UserFactory(email="ann@example.com")
    row = {"account": "Ann@example.com", "description": "Plan", "kind": "monthly", "hours": "4"}

    assert load("allowances", csv_of(row)) == {"new": 1}
    assert counts("allowances", csv_of(row)) == {"unchanged": 1}
    assert told(errors_of("allowances", csv_of(row | {"account": "bob@example.com"}))) == [
        (2, "account")
    ]


def test_hours_that_are_used_cannot_be_taken_away():
    allowance = AllowanceFactory(hours=5)
    AllowanceEntry.objects.create(allowance=allowance, hours=-3, reason="Used", at=NOON)

    assert told(errors_of("allowances", csv_of({"id": allowance.pk, "hours": "2"}))) == [
        (2, "hours")
    ]
    assert counts("allowances", csv_of({"id": allowance.pk, "hours": "3"})) == {"changed": 1}


def test_hours_stay_with_their_account():
    allowance, other = AllowanceFactory(), UserFactory()
    row = {"id": allowance.pk, "account": other.email}

    assert told(errors_of("allowances", csv_of(row))) == [(2, "account")]


# --- The file as a whole ------------------------------------------------------------------------


def refusal(content, name="centers"):
    with pytest.raises(BadFile) as refused:
        check(name, content)
    return str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \n", "empty"),
        (b"name,city\n", "no row"),
        (b"name,city\n,\n\n", "no row"),
        (b"name,seats\nA,3\n", '"seats"'),
        (b"name,citty\nA,B\n", '"city"'),
        (b"city,rank\nA,3\n", '"name"'),
        (b"name,name\nA,B\n", "twice: name"),
        (b"name,NAME\nA,B\n", "twice: name"),
        (b"name,,city\nA,B,C\n", "Column 2"),
        (b"name,city\nA,B,C\n", "Row 2 has more"),
        (b"name,city\nA\n", "Row 2 has fewer"),
        (b"name,city\n" + b"," * 5000, "Row 2 has more"),
        (b'name,city\n"A,B\n', "line"),
        (b'name,city\n"A"x,B\n', "line 2"),
        ("name\nZürich\n".encode("latin-1"), "UTF-8"),
        ("name\nA\n".encode("utf-16"), "UTF-16"),
        (b"\xd0\xcf\x11\xe0 old", ".xls"),
        (b"PK\x03\x04 no zip", ".xlsx"),
        (b"name\x00\nA\n", "neither"),
        (b"name\n" + b"x" * 200_000, "too long"),
        (b"center_id,name,hourly\n1,A,3\n", "those of rates"),
    ],
)
def test_a_file_that_cannot_be_taken_says_why(content, words):
    assert words in refusal(content)


def test_semicolons_tabs_and_the_mark_of_utf8_are_read():
    for delimiter in (",", ";", "\t"):
        content = csv_of(["Name ", "city", "street1"], ["Zürich, A", "B", "C"], delimiter=delimiter)

        _, plan = check("centers", "\ufeff".encode() + content)

        assert plan.rows[0].changes["name"] == ("", "Zürich, A")


def test_too_many_rows_and_bytes(monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 2)
    assert "more than 2 rows" in refusal(b"name\nA\nB\nC\n")
    monkeypatch.setattr(files, "MAX_BYTES", 5)
    assert "larger" in refusal(b"name\nA\n")


def test_a_workbook_that_unpacks_to_too_much(monkeypatch):
    monkeypatch.setattr(files, "MAX_UNPACKED", 100)
    assert "too large" in refusal(xlsx_of(["name"], ["A"]))


def test_empty_rows_do_not_count_but_are_numbered():
    wrong = errors_of("centers", b"name,rank\n\n,\nA,x\n")

    assert (4, "rank") in told(wrong)


# --- Workbooks ----------------------------------------------------------------------------------


def test_a_workbook_with_numbers_dates_and_booleans():
    center = CenterFactory()
    header = ["center_id", "starts_at", "ends_at", "reason"]
    # A workbook knows of no time zones.
    day = dt.datetime(2027, 12, 24, tzinfo=dt.UTC).replace(tzinfo=None)
    noon = day + dt.timedelta(hours=12)
    load("closures", xlsx_of(header, [center.pk, noon, day + dt.timedelta(days=3), 2027]))
    assert Closure.objects.get().reason == "2027"

    load("rates", xlsx_of(["center", "name", "hourly"], [center.name, "A", 0.1 + 0.2]))
    assert Rate.objects.get().hourly == Decimal("0.30")

    code = ["code", "percent", "is_active", "meeting_from"]
    load("promo-codes", xlsx_of(code, ["X", 12.5, False, dt.date(2027, 1, 2)]))
    promo = PromoCode.objects.get()
    assert (promo.is_active, promo.meeting_from) == (False, dt.date(2027, 1, 2))


def test_formulas_and_their_errors_are_refused():
    book = xlsx_of(["name", "rank", "tax_rate"], ["A", "=1+1", "#DIV/0!"])

    assert told(errors_of("centers", book)) == [(2, "rank"), (2, "tax_rate")]


def test_the_right_sheet_of_a_workbook():
    assert counts("centers", xlsx_of(["name", "time_zone"], ["A", "UTC"])) == {"new": 1}
    several = xlsx_of(["name", "time_zone"], ["A", "UTC"], sheet="Centers", more=["Notes"])
    assert counts("centers", several) == {"new": 1}

    assert '"Notes"' in refusal(xlsx_of(["name"], ["A"], more=["Notes"]))
    assert "rates" in refusal(xlsx_of(["name"], ["A"], sheet="rates"))


def test_a_sheet_that_lies_about_its_size():
    """Some programs write a dimension of one cell."""
    content = edited(
        xlsx_of(["name", "time_zone"], ["A", "UTC"]),
        lambda data: data.replace(b'ref="A1:B2"', b'ref="A1"'),
    )

    assert counts("centers", content) == {"new": 1}


def edited(book, edit):
    """The workbook with its sheet's XML changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            target.writestr(entry, edit(data) if entry.filename.endswith("sheet1.xml") else data)
    return out.getvalue()


def test_a_workbook_with_entities_that_grow_is_damaged():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">%s]>' % b"".join(
        b'<!ENTITY %c "%s">' % (letter, b"&%c;" % (letter - 1) * 10) for letter in range(98, 110)
    )
    content = edited(
        xlsx_of(["name"], ["A"]),
        lambda data: data.replace(b"<worksheet", bomb + b"<worksheet", 1).replace(
            b"<sheetData>", b"<sheetData><row><c><v>&m;</v></c></row>"
        ),
    )

    assert "damaged" in refusal(content)


# --- All or nothing -----------------------------------------------------------------------------


def test_one_wrong_row_and_nothing_is_written():
    sheet, plan = check("centers", csv_of(OMAHA | {"rank": "1"}, OMAHA | {"name": "", "rank": "1"}))
    with pytest.raises(Refused):
        sheet.write(plan, Origin(file="x.csv", at=NOON))

    assert not Center.objects.exists()


def test_a_row_that_changed_meanwhile_and_nothing_is_written():
    one, two = CenterFactory(), CenterFactory()
    rows = [{"id": each.pk, "promo_text": "New"} for each in (one, two)]
    sheet, plan = check("centers", csv_of(*rows))
    Center.objects.filter(pk=two.pk).update(rank=5)

    with pytest.raises(Refused, match="Row 3"):
        sheet.write(plan, Origin(file="x.csv", at=NOON))

    assert not Center.objects.filter(promo_text="New").exists()


def test_a_row_that_went_meanwhile():
    stored = MeetingRoomFactory()
    sheet, plan = check("rooms", csv_of({"id": stored.pk, "capacity": "9"}))
    stored.delete()

    with pytest.raises(Refused):
        sheet.write(plan, Origin(file="x.csv", at=NOON))


def test_hours_that_changed_meanwhile():
    center = CenterFactory()
    sheet, plan = check("centers", csv_of({"id": center.pk, "mon": "09:00-17:00"}))
    OpeningHours.objects.create(center=center, weekday=0, opens=dt.time(8), closes=dt.time(9))

    with pytest.raises(Refused):
        sheet.write(plan, Origin(file="x.csv", at=NOON))


@pytest.mark.parametrize("name", ["centers", "closures"])
def test_the_same_file_twice_at_once_adds_its_rows_once(name):
    content = csv_of({"centers": OMAHA}.get(name) or closure(CenterFactory()))
    sheet, plan = check(name, content)
    other, same = check(name, content)
    sheet.write(plan, Origin(file="x.csv", at=NOON))

    with pytest.raises(Refused, match="was added by somebody"):
        other.write(same, Origin(file="x.csv", at=NOON))


@pytest.mark.django_db(transaction=True)
def test_two_at_once_on_two_connections():
    content = csv_of(*({**OMAHA, "name": f"C{number}"} for number in range(50)))
    CenterFactory()
    both = [check("centers", content) for _ in range(2)]
    together, answers = threading.Barrier(2), []

    def write(sheet, plan):
        together.wait()
        try:
            sheet.write(plan, Origin(file="x.csv", at=NOON))
            answers.append("written")
        except Refused:
            answers.append("refused")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=each) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == ["refused", "written"]
    assert Center.objects.filter(city="Omaha").count() == 50


@pytest.mark.django_db(transaction=True)
def test_a_name_that_was_taken_meanwhile():
    center = CenterFactory()
    sheet, plan = check("rooms", csv_of(room(center, name="First"), room(center)))
    MeetingRoomFactory(center=center, name="Aspen")

    with pytest.raises(Refused, match=r"Row 3 .* was added"):
        sheet.write(plan, Origin(file="x.csv", at=NOON))

    assert not MeetingRoom.objects.filter(name="First").exists()


@pytest.mark.django_db(transaction=True)
def test_what_only_the_database_sees_is_told_in_words(monkeypatch):
    center = CenterFactory()
    sheet, plan = check("rooms", csv_of(room(center)))
    MeetingRoomFactory(center=center, name="Aspen")
    monkeypatch.setattr(sheet, "_make_sure_of_new", lambda new: None)

    with pytest.raises(Refused, match="refused a row"):
        sheet.write(plan, Origin(file="x.csv", at=NOON))


# --- History ------------------------------------------------------------------------------------


def test_every_change_is_in_the_history_with_who():
    ann = AdministratorFactory()
    stored = MeetingRoomFactory(capacity=8)
    row = {"id": stored.pk, "center_id": stored.center_id, "name": stored.name, "capacity": "9"}
    LogEntry.objects.all().delete()

    load("rooms", csv_of(row), actor=ann)

    entry = LogEntry.objects.get()
    assert (entry.actor, entry.action) == (ann, LogEntry.Action.UPDATE)
    assert (entry.object_id, entry.changes) == (stored.pk, {"capacity": ["8", "9"]})
    assert entry.additional_data == {"note": "Imported: rows.csv, row 2."}

    load("centers", csv_of(OMAHA), actor=ann)
    entry = LogEntry.objects.get(action=LogEntry.Action.CREATE)
    assert entry.changes["name"] == ["None", "Old Market"]
    assert entry.changes["mon"] == ["None", "08:00-12:30, 14:00-24:00"]


# --- Many rows ----------------------------------------------------------------------------------


def queries(name, content):
    with CaptureQueriesContext(connection) as captured:
        load(name, content)
    return len(captured)


def test_queries_grow_with_batches_not_with_rows():
    center = CenterFactory()
    kind = ResourceTypeFactory()
    RateFactory(center=center, name="Standard")

    def rooms(first, last, seats=8):
        return csv_of(
            *(
                {
                    "center_id": center.pk,
                    "name": f"R{number}",
                    "type": kind.name,
                    "capacity": seats,
                    "rate": "Standard",
                }
                for number in range(first, last)
            )
        )

    def rows_a_query(count, content):
        return count / queries("rooms", content)

    load("rooms", rooms(0, 1))
    assert rows_a_query(1000, rooms(1000, 2000)) > 10
    assert rows_a_query(1000, rooms(1000, 2000, seats=9)) > 10
    # Nothing is written.
    with CaptureQueriesContext(connection) as captured:
        check("rooms", rooms(1000, 2000, seats=9))
    assert len(captured) < 15


def test_ten_thousand_rows_are_told_of_while_they_are_checked(client):
    client.force_login(AdministratorFactory())
    browser = Browser(client, "/admin/centers/center/")
    rows = [{"name": f"C{number}", "city": "X", "time_zone": "UTC"} for number in range(10_000)]

    browser.send(csv_of(*rows))
    page = browser.preview()

    assert [news["done"] for news in browser.news][:3] == [0, 200, 400]
    assert browser.news[-1]["of"] == 10_000
    assert "10,000" in page
    assert page.count("<tr>") < 400


# --- Roles --------------------------------------------------------------------------------------


def test_rows_of_other_centers_are_not_theirs_to_change():
    mine, other = MeetingRoomFactory(), MeetingRoomFactory()
    allowed = Allowed(add={mine.center_id}, change={mine.center_id}, export=set())

    def wrong(row):
        return told(errors_of("rooms", csv_of(row), allowed))

    assert wrong({"id": mine.pk, "capacity": "9"}) == []
    assert wrong({"id": other.pk, "capacity": "9"}) == [(2, "id")]
    assert wrong(room(other.center)) == [(2, "center_id")]
    named = room(other.center) | {"center": other.center.name}
    del named["center_id"]
    assert wrong(named) == [(2, "center")]


def test_who_has_some_centers_cannot_add_one():
    mine, other = CenterFactory(), CenterFactory()
    allowed = Allowed(add={mine.pk}, change={mine.pk}, export={mine.pk})

    assert told(errors_of("centers", csv_of(OMAHA), allowed)) == [(2, "")]
    row = {"id": other.pk, "rank": "1"}
    assert told(errors_of("centers", csv_of(row), allowed)) == [(2, "id")]
    named = {"name": other.name, "city": "Denver", "state": "CO", "rank": "1"}
    assert told(errors_of("centers", csv_of(named), allowed)) == [(2, "")]
    assert errors_of("centers", csv_of({"id": mine.pk, "rank": "1"}), allowed) == []


LISTS = {
    "centers/center": True,
    "centers/meetingroom": True,
    "centers/rate": True,
    "centers/service": True,
    "centers/closure": True,
    "reservations/promocode": False,
    "reservations/allowance": False,
}


@pytest.mark.parametrize(("page", "is_of_centers"), LISTS.items())
def test_who_may_import(client, staff, page, is_of_centers):
    center = CenterFactory()
    address = f"/admin/{page}/import/"
    everywhere, there = staff("Manager"), staff("Manager", center)
    may = {everywhere: True, there: is_of_centers}
    for role in ("Viewer", "Desk", "Accountant"):
        may |= {staff(role): False, staff(role, center): False}

    for user, is_allowed in may.items():
        client.force_login(user)
        assert client.get(address).status_code == (200 if is_allowed else 403), user


# --- Pages --------------------------------------------------------------------------------------


@pytest.fixture
def rooms_page(client, staff):
    stored = MeetingRoomFactory(name="Aspen", capacity=8)
    client.force_login(staff("Manager", stored.center))
    browser = Browser(client, "/admin/centers/meetingroom/")
    browser.room = stored
    return browser


def test_preview_confirm_done(rooms_page):
    stored = rooms_page.room
    rooms_page.send(csv_of({"id": stored.pk, "name": "Aspen <b>", "capacity": "9"}))
    page = rooms_page.client.get(rooms_page.page).content.decode()
    assert "rows.csv" in page
    assert f"{rooms_page.page}check/" in page

    preview = rooms_page.preview()
    assert "Aspen &lt;b&gt;" in preview
    assert '<del class="imports-old">8</del>' in preview
    stored.refresh_from_db()
    assert stored.capacity == 8

    assert "1 changed" in rooms_page.confirm(preview)
    stored.refresh_from_db()
    assert stored.capacity == 9
    assert not Upload.objects.exists()
    assert LogEntry.objects.filter(actor__isnull=False, object_id=stored.pk).exists()


def test_a_preview_with_errors_offers_no_import(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "many"}))
    preview = rooms_page.preview()

    assert "<code>capacity</code>" in preview
    assert "digest" not in preview
    answer = rooms_page.client.post(f"{rooms_page.page}write/", {"digest": ""})
    assert "<code>capacity</code>" in rooms_page.told(answer)


def test_what_changed_since_the_preview_is_previewed_again(rooms_page):
    stored = rooms_page.room
    rooms_page.send(csv_of({"id": stored.pk, "capacity": "9"}))
    preview = rooms_page.preview()
    MeetingRoom.objects.filter(pk=stored.pk).update(capacity=7)

    again = rooms_page.confirm(preview)

    assert "Something changed since the preview" in again
    assert '<del class="imports-old">7</del>' in again
    stored.refresh_from_db()
    assert stored.capacity == 7
    assert "1 changed" in rooms_page.confirm(again)


def test_nothing_to_import(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "8"}))

    assert "nothing to import" in rooms_page.preview()


def test_a_file_that_cannot_be_taken_is_told_on_the_page(rooms_page):
    rooms_page.send(b"name,seats\nA,3\n")

    assert "Unknown columns" in rooms_page.preview()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("capcity", 'Unknown columns: "capcity" (is it "capacity"?).'),
        ("max_minutes", 'Unknown columns: "max_minutes" (is it "maximum_minutes"?).'),
        ("city", 'Unknown columns: "city".'),
    ],
)
def test_an_unknown_column_is_asked_about_where_only_the_hand_slipped(name, words):
    with pytest.raises(BadFile) as bad:
        check("rooms", csv_of({"name": "A", name: "3"}))

    assert str(bad.value).startswith(words)


def test_no_file_and_an_empty_one(rooms_page):
    assert b"Choose a file." in rooms_page.client.post("/admin/centers/meetingroom/import/").content
    assert b"The file is empty." in rooms_page.send(b"").content


def test_a_file_that_is_too_large(rooms_page, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 3)

    assert b"The file is larger" in rooms_page.send(b"name\nA\n").content


def test_the_file_of_somebody_else_is_not_found(rooms_page, staff):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    rooms_page.client.force_login(staff("Manager"))

    for page in ("", "check/"):
        assert rooms_page.client.get(f"{rooms_page.page}{page}").status_code == 404
    assert rooms_page.client.post(f"{rooms_page.page}write/").status_code == 404


def test_a_role_that_was_taken_away_meanwhile(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    preview = rooms_page.preview()
    Upload.objects.get().user.center_roles.all().delete()
    digest = preview.split('name="digest" value="')[1].split('"')[0]

    answer = rooms_page.client.post(f"{rooms_page.page}write/", {"digest": digest})

    assert answer.status_code == 403


def test_writing_wants_a_post(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))

    assert rooms_page.client.get(f"{rooms_page.page}write/").status_code == 405


def test_a_defect_is_told_and_logged(rooms_page, monkeypatch, caplog):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    monkeypatch.setattr(files, "read", lambda *args, **kwargs: 1 / 0)

    assert "Something went wrong" in rooms_page.preview()
    assert "An import failed" in caplog.text


def test_files_that_nobody_confirmed_go_after_a_day(rooms_page):
    rooms_page.send(b"name\nA\n")
    Upload.objects.update(created_at=NOON - dt.timedelta(days=400))

    rooms_page.send(b"name\nB\n")

    assert Upload.objects.count() == 1


def test_bookings_that_a_closure_touches_are_told(client):
    from tests.factories_reservations import booked

    client.force_login(AdministratorFactory())
    reservation = booked()
    local = reservation.start.astimezone(reservation.room.center.zone)
    day = f"{local:%Y-%m-%d}"
    row = closure(reservation.room.center, starts_at=f"{day}T00:00", ends_at=f"{day}T23:00")
    browser = Browser(client, "/admin/centers/closure/")
    browser.send(csv_of(row))

    assert "hold their room" in browser.confirm(browser.preview())
