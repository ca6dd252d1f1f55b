"""Holidays of several centers: public ones from a list, and days that staff enter."""

import datetime as dt
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from centers import holidays, models
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory

HOLIDAYS = reverse("admin:centers_closure_holidays")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def ask(office, center, do, **fields):
    centers = center if isinstance(center, list) else [center]
    data = {"centers": [each.pk for each in centers], "year": "2027", "do": do, **fields}
    return office.post(HOLIDAYS, data)


def count_new(page):
    """How many closures are new, by holiday."""
    return {each.reason: len(closures) for each, closures in page.context["plan"].items()}


def closed_days(center):
    return [
        (f"{row.starts_at.astimezone(center.zone):%m-%d %H:%M}", row.reason)
        for row in center.closures.order_by("starts_at")
    ]


def test_holidays_are_previewed_then_added_once_to_each_center(office):
    center, other = CenterFactory(), CenterFactory()
    lines = "2027-12-25 Christmas Day\n\n2027-07-04, Independence Day\n2026-01-01 Long ago"
    preview = ask(office, center, "preview", lines=lines)
    assert count_new(preview) == {"Long ago": 0, "Independence Day": 1, "Christmas Day": 1}
    assert "Add 2 closures" in preview.text
    assert not center.closures.exists()
    for _ in range(2):
        assert ask(office, center, "write", lines=lines).status_code == 302
    assert closed_days(center) == [
        ("07-04 00:00", "Independence Day"),
        ("12-25 00:00", "Christmas Day"),
    ]
    again = ask(office, center, "preview", lines=lines)
    assert set(count_new(again).values()) == {0}
    # The other one is not closed yet.
    preview = ask(office, [center, other], "preview", lines="2027-12-25 Christmas Day")
    assert count_new(preview) == {"Christmas Day": 1}
    ask(office, [center, other], "write", lines="2027-12-25 Christmas Day")
    assert models.Closure.objects.count() == 3


def test_holiday_is_a_whole_local_day_of_each_center(office):
    denver, tokyo = CenterFactory(), CenterFactory(time_zone_id="Asia/Tokyo")
    # 23 hours in Denver: the clock goes forward.
    ask(office, [denver, tokyo], "write", lines="2027-03-14 Pi day")
    lengths = {
        row.center_id: (row.starts_at, row.ends_at - row.starts_at)
        for row in models.Closure.objects.all()
    }
    assert lengths == {
        denver.pk: (datetime(2027, 3, 14, 7, tzinfo=UTC), dt.timedelta(hours=23)),
        tokyo.pk: (datetime(2027, 3, 13, 15, tzinfo=UTC), dt.timedelta(hours=24)),
    }


def test_closure_of_a_room_does_not_close_the_center(office):
    room = MeetingRoomFactory()
    ClosureFactory(
        center=room.center,
        room=room,
        starts_at=datetime(2027, 12, 25, 7, tzinfo=UTC),
        ends_at=datetime(2027, 12, 26, 7, tzinfo=UTC),
    )
    ask(office, room.center, "write", lines="2027-12-25 Christmas Day")
    assert room.center.closures.count() == 2


def test_country_and_region_are_those_of_the_center(office):
    center = CenterFactory(country="DE", state="Bayern")
    form = office.get(f"{HOLIDAYS}?center={center.pk}").context["form"]
    assert (form["country"].value(), form["region"].value()) == ("DE", "BY")


def test_days_of_another_region_replace_the_listed_ones_and_own_days_stay(office):
    center, form = CenterFactory(), {"lines": "2027-05-02 Ours", "listed": ""}
    expected = [("DE", "BE", 2027), ("DE", "BY", 2027), ("DE", "BY", 2028)]
    for country, region, year in expected:
        form = ask(office, center, "list", country=country, region=region, **form | {"year": year})
        form = {name: form.context["form"][name].value() for name in ("lines", "listed")}
        if region == "BE":
            assert "2027-03-08 Women's Day" in form["lines"]

    lines = form["lines"].splitlines()
    assert {"2027-05-02 Ours", "2027-01-06 Epiphany", "2028-01-06 Epiphany"} <= {*lines}
    assert "2027-03-08 Women's Day" not in lines
    assert not models.Closure.objects.exists()


@pytest.mark.parametrize(
    ("line", "starts", "ends"),
    [
        ("2027-12-24 Christmas Eve, closed from 12:00", "12-24 19:00", "12-25 07:00"),
        ("2027-12-24 Christmas Eve closed until 9:30", "12-24 07:00", "12-24 16:30"),
        ("2027-12-24 closed from 12:00 to 13:00", "12-24 19:00", "12-24 20:00"),
        ("2027-12-24 to 2027-12-26, closed from 18:00 until 06:00", "12-25 01:00", "12-26 13:00"),
        ("2027-12-24..2027-12-26 Break", "12-24 07:00", "12-27 07:00"),
        ("2027-03-14 closed from 12:00", "03-14 18:00", "03-15 06:00"),
    ],
)
def test_line_can_name_times(office, line, starts, ends):
    ask(office, CenterFactory(), "write", lines=line)

    closure = models.Closure.objects.get()
    assert f"{closure.starts_at:%m-%d %H:%M}" == starts
    assert f"{closure.ends_at:%m-%d %H:%M}" == ends
    [holiday] = holidays.parse_lines(line)
    assert holidays.parse_lines(str(holiday)) == [holiday]


@pytest.mark.parametrize(
    ("do", "fields", "message"),
    [
        ("preview", {"lines": ""}, "Enter at least one day."),
        ("preview", {"lines": "Christmas"}, "Line 1: Enter a day such as 2027-12-25"),
        ("preview", {"lines": "2027-01-01 New\n2027-02-30 No"}, "Line 2: There is no such"),
        ("preview", {"lines": "2027-12-26 to 2027-12-25 A"}, "The last day is before the first"),
        ("preview", {"lines": "2027-01-01 to 2029-01-01 A"}, "can last for one year at most."),
        ("preview", {"lines": "1900-01-01 Old"}, "The year must be between 2000 and 2100."),
        ("preview", {"lines": f"2027-01-01 {'x' * 300}"}, "255 characters at most"),
        ("preview", {"lines": "2027-01-01 \0"}, "Null characters are not allowed."),
        ("write", {"lines": "2027-13-01"}, "There is no such day."),
        ("list", {}, "Choose a country."),
        ("preview", {"lines": "2027-12-24 closed from 25:00"}, "There is no such time."),
        ("preview", {"lines": "2027-12-24 closed from 12:00 to 9:00"}, "must be after the start"),
        ("preview", {"centers": "3000000000", "lines": "2027-01-01"}, "is not a valid choice"),
    ],
)
def test_invalid_holidays_show_a_message(office, do, fields, message):
    center = CenterFactory()
    answer = ask(office, center, do, **fields)
    assert answer.status_code == 200
    assert message in answer.text
    assert not models.Closure.objects.exists()


def test_holidays_require_permission_at_the_center(client, staff):
    mine, other = CenterFactory(), CenterFactory()
    client.force_login(staff("Manager", mine))
    assert client.get(f"{HOLIDAYS}?center={mine.pk}").status_code == 200
    assert client.get(f"{HOLIDAYS}?center=x").status_code == 200
    lines = "2030-12-25 Christmas Day"
    assert "Select a valid choice" in ask(client, other, "write", lines=lines).text
    assert ask(client, mine, "write", lines=lines).status_code == 302
    assert (mine.closures.count(), other.closures.count()) == (1, 0)
    client.force_login(staff("Viewer"))
    assert client.get(HOLIDAYS).status_code == 403
    assert ask(client, mine, "write", lines=lines).status_code == 403
