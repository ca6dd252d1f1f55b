"""Importing centers, rates, rooms, services and closures: what is written, what is refused."""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from centers.models import Center, Closure, MeetingRoom, OpeningHours, Rate, Service
from reservations.models import Allowance, PromoCode
from roombook.imports import constraints
from roombook.imports.resources import RESOURCES
from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    RateFactory,
    ServiceTypeFactory,
)
from tests.imports import (
    OMAHA,
    a_closure,
    a_room,
    cells_of,
    check,
    counts,
    csv_of,
    errors_of,
    load,
)

pytestmark = pytest.mark.django_db


# --- Centers ------------------------------------------------------------------------------------


def test_a_center_is_added_as_saving_it_would():
    assert load("centers", csv_of(OMAHA)) == {"new": 1}

    center = Center.objects.get()
    assert (center.country, center.state) == ("US", "NE")
    assert center.time_zone_id == "America/Chicago"
    assert center.tax_rate == Decimal("5.500")
    assert center.x is not None
    assert "nebraska" in center.search_text
    assert Center.objects.containing_words(["omaha"]).get() == center
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

    assert cells_of(errors_of("centers", csv_of(row))) == [(2, "")]
    assert counts("centers", csv_of({"id": one.pk, **row})) == {"changed": 1}


# --- Rates, rooms, services ---------------------------------------------------------------------


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

    assert cells_of(wrong) == [(2, column)]
    assert wrong[0][2].endswith(".")


def test_all_errors_of_all_rows_are_told():
    rows = [OMAHA | {"rank": "1"}, OMAHA | {"name": "B", "rank": "x", "mon": "y"}]

    assert cells_of(errors_of("centers", csv_of(*rows))) == [(3, "mon"), (3, "rank")]


@pytest.mark.parametrize("cell", ["12.345", "12,50", "$12", "1e3", "-1", "99999999999", "free"])
def test_a_price_is_exact_or_refused(cell):
    center = CenterFactory()
    row = {"center_id": center.pk, "name": "Standard", "hourly": cell}

    assert cells_of(errors_of("rates", csv_of(row))) == [(2, "hourly")]


def test_a_flat_rate_needs_its_price():
    row = {"center_id": CenterFactory().pk, "name": "Standard", "is_flat_rate": "true"}
    assert cells_of(errors_of("rates", csv_of(row | {"flat_rate": ""}))) == [(2, "flat_rate")]


def test_a_price_of_nothing_is_to_be_read_twice():
    row = {"center_id": CenterFactory().pk, "name": "Standard", "hourly": "0", "full_day": ""}
    _, result = check("rates", csv_of(row))

    assert [column for column, _ in result.rows[0].notes] == ["hourly"]


def test_a_room_with_a_rate_of_its_center():
    rate = RateFactory(name="Standard")

    load("rooms", csv_of(a_room(rate.center, rate="standard")))

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

    wrong = errors_of("rooms", csv_of(a_room(CenterFactory()) | fields))

    assert cells_of(wrong) == [(2, column)]


def test_every_check_of_the_database_is_judged_before():
    """One that could only be judged by a query would fail loudly here."""
    models = (Center, Rate, MeetingRoom, Service, Closure, PromoCode, Allowance)
    failed = [
        check.name for model in models for check, _ in constraints.get_violated_checks(model())
    ]

    assert failed == ["center_has_a_time_zone", "promo_code_is_percent_or_amount"]


def test_rows_of_one_key_are_refused():
    center = CenterFactory()
    row = a_room(center)

    assert cells_of(errors_of("rooms", csv_of(row, row | {"name": "ASPEN"}))) == [(3, "name")]


def test_one_stored_row_twice_is_refused():
    stored = MeetingRoomFactory()
    rows = [{"id": stored.pk, "capacity": "8"}, {"id": stored.pk, "capacity": "9"}]

    assert cells_of(errors_of("rooms", csv_of(*rows))) == [(3, "")]


def test_a_name_that_another_room_has_is_refused():
    one = MeetingRoomFactory(name="One")
    MeetingRoomFactory(name="Two", center=one.center)

    assert cells_of(errors_of("rooms", csv_of({"id": one.pk, "name": "two"}))) == [(2, "name")]


def test_an_unknown_id_is_refused_and_an_empty_one_is_new():
    center = CenterFactory()

    assert cells_of(errors_of("rooms", csv_of({"id": "999", **a_room(center)}))) == [(2, "id")]
    assert cells_of(errors_of("rooms", csv_of({"id": "one", **a_room(center)}))) == [(2, "id")]
    assert load("rooms", csv_of({"id": "", **a_room(center)})) == {"new": 1}


def test_a_room_stays_at_its_center():
    stored, other = MeetingRoomFactory(), CenterFactory()
    row = {"id": stored.pk, "center_id": other.pk, "name": stored.name}

    assert cells_of(errors_of("rooms", csv_of(row))) == [(2, "center")]


def test_a_center_by_name_where_only_one_is_called_so():
    CenterFactory(name="Loft")
    named = a_room(CenterFactory(name="Twin")) | {"center": "loft"}
    del named["center_id"]
    CenterFactory(name="Twin")

    assert counts("rooms", csv_of(named)) == {"new": 1}
    assert cells_of(errors_of("rooms", csv_of(named | {"center": "Twin"}))) == [(2, "center")]
    assert cells_of(errors_of("rooms", csv_of(named | {"center": ""}))) == [(2, "center")]


def test_services():
    center = CenterFactory()
    kind = ServiceTypeFactory()
    row = {"center_id": center.pk, "name": "Coffee", "type": kind.name, "needs_quantity": "yes"}

    assert load("services", csv_of(row)) == {"new": 1}
    assert Service.objects.get().needs_quantity is True
    assert counts("services", csv_of(row)) == {"unchanged": 1}


# --- Closures -----------------------------------------------------------------------------------


def test_a_closure_is_on_the_clock_of_its_center():
    center = CenterFactory()
    load("closures", csv_of(a_closure(center)))

    assert Closure.objects.get().starts_at == dt.datetime(2027, 12, 24, 19, tzinfo=dt.UTC)
    assert counts("closures", csv_of(a_closure(center))) == {"unchanged": 1}


def test_the_hour_that_the_clock_shows_twice_comes_back_with_its_offset():
    zone = ZoneInfo("America/Denver")
    ClosureFactory(
        center=CenterFactory(),
        starts_at=dt.datetime(2027, 11, 7, 1, 30, tzinfo=zone, fold=1),
        ends_at=dt.datetime(2027, 11, 7, 9, tzinfo=zone),
    )
    text = "".join(RESOURCES["closures"]().export_csv())

    assert "2027-11-07T01:30-07:00" in text
    assert counts("closures", text.encode()) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"starts_at": "2027-03-14T02:30"}, "starts_at"),
        ({"starts_at": "12/24/2027"}, "starts_at"),
        ({"starts_at": "2027-12-24"}, "starts_at"),
        ({"starts_at": "0001-01-01T00:00+14:00"}, "starts_at"),
        ({"ends_at": ""}, "ends_at"),
        ({"ends_at": "2027-12-24T12:00"}, "starts_at"),
        ({"room": "Nowhere"}, "room"),
    ],
)
def test_what_is_wrong_with_a_closure(fields, column):
    assert cells_of(errors_of("closures", csv_of(a_closure(CenterFactory(), **fields)))) == [
        (2, column)
    ]
