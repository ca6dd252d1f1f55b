"""Importing centers, rates, rooms, services and closures: what is written, what is refused."""

import csv
import datetime as dt
from decimal import Decimal

import pytest

from centers.hours import WEEKDAYS
from centers.models import (
    Center,
    Closure,
    MeetingRoom,
    OpeningHours,
    PriceList,
    Rate,
    Terms,
)
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    PriceListFactory,
    RateFactory,
    ServiceFactory,
    ServiceTypeFactory,
)
from tests.imports import (
    OMAHA,
    build_csv,
    check,
    closure_row,
    count_rows,
    export_csv,
    get_cells,
    get_errors,
    load,
    room_row,
)

pytestmark = pytest.mark.django_db


# --- Centers ------------------------------------------------------------------------------------


def test_new_center_gets_derived_fields():
    NeighborhoodFactory(name="Old Market", city="Omaha", state="NE")
    row = OMAHA | {"neighborhood": "Old Market, Omaha, NE"}
    assert load("centers", build_csv(row)) == {"new": 1}

    center = Center.objects.get()
    assert (center.country, center.state) == ("US", "NE")
    assert center.time_zone_id == "America/Chicago"
    assert (center.tax_rate, center.prices_include_tax) == (Decimal("5.500"), True)
    assert center.x is not None
    assert {"nebraska", "old market"} <= set(center.search_text.split("\n"))
    assert Center.objects.containing_words(["omaha"]).get() == center
    hours = center.opening_hours.values_list("weekday", "opens", "closes")
    assert list(hours) == [(0, dt.time(8), dt.time(12, 30)), (0, dt.time(14), dt.time(0))]


def test_opening_hours_of_one_day_are_replaced():
    center = CenterFactory()
    for weekday in (0, 1):
        OpeningHours.objects.create(
            center=center, weekday=weekday, opens=dt.time(9), closes=dt.time(17)
        )

    load("centers", build_csv({"id": center.pk, "mon": "closed"}))

    assert [hours.weekday for hours in center.opening_hours.all()] == [1]


@pytest.mark.parametrize(
    ("columns", "stored"),
    [
        ({"fri": "22:00-02:00", "sat": "22:00-02:00"}, [(4, 22, 2), (5, 22, 2)]),
        ({"mon": "09:00-12:00, 20:00-01:00", "tue": "01:00-24:00"}, None),
        ({"sun": "18:00-06:00", "mon": "06:00-06:30"}, None),
        (dict.fromkeys(WEEKDAYS, "00:00-24:00"), [(day, 0, 0) for day in range(7)]),
    ],
)
def test_opening_hours_over_midnight_are_imported_and_exported(columns, stored):
    center = CenterFactory()
    load("centers", build_csv({"id": center.pk, **columns}))

    rows = center.opening_hours.values_list("weekday", "opens__hour", "closes__hour")
    assert stored is None or list(rows) == stored
    [exported] = csv.DictReader(export_csv("centers").splitlines())
    assert {day: exported[day] for day in columns} == columns


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ({"mon": "09:00-12:00, 11:00-13:00"}, ["mon"]),
        ({"mon": "22:00-02:00", "tue": "01:00-09:00"}, ["mon", "tue"]),
        ({"sun": "22:00-10:00"}, ["mon", "sun"]),  # Monday is stored
    ],
)
def test_opening_hours_that_overlap_are_refused_in_their_columns(columns, wrong):
    center = CenterFactory()
    OpeningHours.objects.create(center=center, weekday=0, opens=dt.time(9), closes=dt.time(10))

    errors = get_errors("centers", build_csv({"id": center.pk, **columns}))

    assert get_cells(errors) == [(2, column) for column in wrong]


def test_centers_with_the_same_name_need_ids():
    one, _ = CenterFactory(name="Twin"), CenterFactory(name="Twin")
    row = {"name": "Twin", "city": "Denver", "state": "CO", "rank": "1"}

    assert get_cells(get_errors("centers", build_csv(row))) == [(2, "")]
    assert count_rows("centers", build_csv({"id": one.pk, **row})) == {"changed": 1}


# --- Rates, rooms, services ---------------------------------------------------------------------


def rate_row(center, **fields):
    return {"center_id": center.pk, "name": "Standard", **fields}


@pytest.mark.parametrize(
    ("resource", "build_row", "column", "cells"),
    [
        *(
            ("centers", lambda center: OMAHA, column, cells)
            for column, cells in (
                ("name", ["", "x" * 256, "a\x00b"]),
                ("country", ["Atlantis"]),
                ("latitude", ["91", "1,2.5"]),
                ("time_zone", ["Mars/Olympus"]),
                ("neighborhood", ["Nowhere"]),
                ("mon", ["nine to five", "09:00-09:00", "08:00-26:00"]),
                ("is_active", ["maybe", ""]),
                ("rank", ["-1", "9999999999"]),
                ("tax_rate", ["8.8125", "101", "NaN"]),
            )
        ),
        ("rates", rate_row, "hourly", ["12.345", "1,250", "1.250,50", "$12", "99999999999"]),
        *(
            ("rooms", room_row, column, cells)
            for column, cells in (
                ("rate", ["Elsewhere"]),
                ("type", ["Swimming pool", "", "Coffee"]),
                ("capacity", ["0", "", "1.000", "12.0"]),
                ("center", ["Another"]),
            )
        ),
        *(
            ("closures", closure_row, column, cells)
            for column, cells in (
                ("starts_at", ["2027-03-14T02:30", "12/24/2027", "0001-01-01T00:00+14:00"]),
                ("ends_at", [""]),
                ("room", ["Nowhere"]),
            )
        ),
    ],
)
def test_wrong_cell_is_reported_by_row_and_column(resource, build_row, column, cells):
    RateFactory(name="Elsewhere")
    ServiceTypeFactory(name="Coffee")
    row = build_row(CenterFactory())
    for cell in cells:
        wrong = get_errors(resource, build_csv(row | {column: cell}))

        assert get_cells(wrong) == [(2, column)], cell
        assert wrong[0][2].endswith(".")


@pytest.mark.parametrize(
    ("resource", "build_row", "fields", "column"),
    [
        ("rates", rate_row, {"is_flat_rate": "true", "flat_rate": ""}, "flat_rate"),
        ("rooms", room_row, {"minimum_minutes": "60", "maximum_minutes": "30"}, ""),
        ("closures", closure_row, {"ends_at": "2027-12-24T12:00"}, ""),
    ],
)
def test_cells_that_do_not_fit_together_are_reported(resource, build_row, fields, column):
    wrong = get_errors(resource, build_csv(build_row(CenterFactory()) | fields))

    assert get_cells(wrong) == [(2, column)]


def test_price_of_zero_has_a_note():
    row = {"center_id": CenterFactory().pk, "name": "Standard", "hourly": "0", "full_day": ""}
    _, result = check("rates", build_csv(row))

    assert [column for column, _ in result.rows[0].notes] == ["hourly"]


def test_room_cannot_get_the_rate_of_a_service_nor_the_other_way_round():
    room = MeetingRoomFactory(rate__name="Standard")
    coffee = ServiceFactory(center=room.center, name="Coffee", rate__name="Per cup")
    head = ["center_id", "name", "rate"]

    for name, row, rate, others in (
        ("rooms", room, "per cup", "services"),
        ("services", coffee, "standard", "rooms"),
    ):
        file = build_csv(head, [room.center_id, row.name, rate])
        error = f"This is a rate of {others}. Enter another one."
        assert get_errors(name, file) == [(2, "rate", error)]
        same = build_csv(head, [room.center_id, row.name, row.rate.name])
        assert count_rows(name, same) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ({"id": "999"}, "id"),
        ({"id": ""}, None),
        # The name of another room, and another center than that of the room.
        ({"id": "{one.pk}", "name": "two"}, "name"),
        ({"id": "{one.pk}", "center_id": "{twin.pk}"}, "center"),
        # The name of a center is enough if there is one of that name.
        ({"center_id": "", "center": "loft"}, None),
        ({"center_id": "", "center": "Twin"}, "center"),
    ],
)
def test_row_of_a_room_names_its_room_and_center(columns, wrong):
    one = MeetingRoomFactory(name="One", center__name="Loft")
    MeetingRoomFactory(name="Two", center=one.center)
    twin, _ = CenterFactory(name="Twin"), CenterFactory(name="Twin")
    typed = {name: text.format(one=one, twin=twin) for name, text in columns.items()}
    file = build_csv(room_row(one.center) | typed)

    if wrong:
        assert get_cells(get_errors("rooms", file)) == [(2, wrong)]
    else:
        assert load("rooms", file) == {"new": 1}


def test_new_name_of_a_room_is_refused_for_another_row():
    one = MeetingRoomFactory(name="One")
    row = room_row(one.center, id=one.pk, name="Three")
    rows = [row, row | {"id": "", "name": "THREE"}]
    for both in (rows, rows[::-1]):
        assert get_cells(get_errors("rooms", build_csv(*both))) == [(3, "")]


# --- Closures -----------------------------------------------------------------------------------


def test_closure_is_in_local_time_of_its_center_with_an_offset_in_an_hour_that_is_repeated():
    center = CenterFactory()
    load("closures", build_csv(closure_row(center)))

    assert Closure.objects.get().starts_at == dt.datetime(2027, 12, 24, 19, tzinfo=dt.UTC)
    assert count_rows("closures", build_csv(closure_row(center))) == {"unchanged": 1}
    Closure.objects.update(starts_at=dt.datetime(2027, 11, 7, 8, 30, tzinfo=dt.UTC))
    text = export_csv("closures")
    assert "2027-11-07T01:30-07:00" in text
    assert count_rows("closures", text.encode()) == {"unchanged": 1}


# --- Price lists ----------------------------------------------------------------------------------


@pytest.fixture
def special():
    return PriceListFactory(rate__name="Standard", rate__center__name="Union Station")


def price_row(special, **fields):
    rate = special.rate
    return {
        "center": rate.center.name,
        "rate": rate.name,
        "name": "Weekend",
        "weekdays": "sat, sun",
        "hours": "08:00-18:00",
        "valid_from": "2027-01-01",
        "is_yearly": "false",
        "hourly": "40",
        **fields,
    }


def test_price_list_is_added_and_its_rate_knows(special):
    PriceList.objects.all().delete()
    assert load("price-lists", build_csv(price_row(special, hours=""))) == {"new": 1}
    rate = Rate.objects.get()
    [weekend] = rate.special_prices
    assert (weekend.weekdays, weekend.hourly) == ("sat,sun", Decimal(40))
    assert weekend.starts == weekend.ends == dt.time()
    assert count_rows("price-lists", export_csv("price-lists").encode()) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("fields", "column", "message"),
    [
        ({"weekdays": "sat, sunday"}, "weekdays", "sunday is no weekday"),
        ({"hours": "22:00-02:00"}, "hours", "It ends at 24:00 at the latest."),
        ({"rate": "Other"}, "rate", "no rate of that name"),
        ({"hourly": ""}, "", "Enter at least one price."),
        (
            {"hours": "08:00-18:30"},
            *("hours", "Evening and Weekend would both hold on Sat 2027-03-06 18:00."),
        ),
    ],
)
@pytest.mark.usefixtures("clock")
def test_wrong_price_list_is_named(special, fields, column, message):
    [(row, where, what)] = get_errors("price-lists", build_csv(price_row(special, **fields)))
    assert (row, where) == (2, column)
    assert message in what


def test_lists_that_only_overlap_between_two_rows_are_imported(special):
    rows = [
        price_row(special, hours="17:00-24:00"),
        price_row(special, name="Evening", weekdays="mon", hours="17:00-24:00"),
    ]
    assert load("price-lists", build_csv(*rows)) == {"new": 1, "changed": 1}


# --- Terms of cancellation ------------------------------------------------------------------------

FLEXIBLE = {"center": OMAHA["name"], "name": "Flexible", "steps": "168: 100;48: 50 %"}


@pytest.fixture
def _omaha():
    load("centers", build_csv(OMAHA))


@pytest.mark.usefixtures("_omaha")
def test_terms_are_imported_and_then_named_by_center_and_room():
    assert load("terms", build_csv(FLEXIBLE)) == {"new": 1}
    assert load("terms", build_csv(FLEXIBLE | {"steps": ""})) == {"changed": 1}
    assert load("centers", build_csv(OMAHA | {"terms": "flexible"})) == {"changed": 1}
    center, terms = Center.objects.get(), Terms.objects.get()
    assert (center.terms, terms.steps, terms.grace_minutes) == (terms, "", 0)
    room = MeetingRoomFactory(center=center)
    row = {"id": room.pk, "terms": "Flexible"}
    assert load("rooms", build_csv(row)) == {"changed": 1}
    assert MeetingRoom.objects.get().terms == terms


@pytest.mark.usefixtures("_omaha")
@pytest.mark.parametrize(
    ("name", "row", "column", "message"),
    [
        ("terms", FLEXIBLE | {"steps": "48: 50; 168: 100"}, "steps", "fewer hours left"),
        ("terms", FLEXIBLE | {"no_show_percent": "101"}, "no_show_percent", "100"),
        ("centers", OMAHA | {"terms": "Strict"}, "terms", "no terms of that name"),
        (
            "rooms",
            {"center": OMAHA["name"], "name": "Aspen", "terms": "Strict"},
            *("terms", "no terms of that name"),
        ),
    ],
)
def test_wrong_terms_are_named(name, row, column, message):
    errors = {where: what for _, where, what in get_errors(name, build_csv(row))}
    assert message in errors[column]
