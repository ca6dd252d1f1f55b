"""Holidays of several centers: entered, read from a calendar, or copied."""

import datetime as dt
from datetime import UTC, date, datetime

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from centers import holidays, models
from centers.holidays import Holiday
from tests.backoffice.center_pages import NOW
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory

pytestmark = pytest.mark.django_db

HOLIDAYS = reverse("admin:centers_closure_holidays")


@pytest.fixture
def _in_november():
    with time_machine.travel(NOW, tick=False):
        yield


def ask(office, center, do, **fields):
    centers = center if isinstance(center, list) else [center]
    data = {"centers": [each.pk for each in centers], "year": "2027", "do": do, **fields}
    return office.post(HOLIDAYS, data)


def closed_days(center):
    return [
        (f"{row.starts_at.astimezone(center.zone):%m-%d %H:%M}", row.reason)
        for row in center.closures.order_by("starts_at")
    ]


@pytest.mark.usefixtures("_in_november")
def test_holidays_are_previewed_then_added_once(office):
    center = CenterFactory()
    lines = "2027-12-25 Christmas Day\n\n2027-07-04, Independence Day\n2026-01-01 Long ago"
    preview = ask(office, center, "preview", lines=lines)
    assert [(day["holiday"].reason, day["status"]) for day in preview.context["days"]] == [
        ("Long ago", "past"),
        ("Independence Day", "new"),
        ("Christmas Day", "new"),
    ]
    assert "Add 2 closures" in preview.content.decode()
    assert not center.closures.exists()
    for _ in range(2):
        assert ask(office, center, "write", lines=lines).status_code == 302
    assert closed_days(center) == [
        ("07-04 00:00", "Independence Day"),
        ("12-25 00:00", "Christmas Day"),
    ]
    again = ask(office, center, "preview", lines=lines)
    assert {day["status"] for day in again.context["days"]} == {"past", "already closed"}


@pytest.mark.usefixtures("_in_november")
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


@pytest.mark.usefixtures("_in_november")
def test_preview_counts_the_centers_that_are_already_closed(office):
    one, other = CenterFactory(), CenterFactory()
    ask(office, one, "write", lines="2027-12-25 Christmas Day")
    preview = ask(office, [one, other], "preview", lines="2027-12-25 Christmas Day")
    assert preview.context["days"][0]["status"] == "new at 1 center, already closed at 1 center"
    ask(office, [one, other], "write", lines="2027-12-25 Christmas Day")
    assert models.Closure.objects.count() == 2


@pytest.mark.usefixtures("_in_november")
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


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//holidays//EN
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20271224
DTEND;VALUE=DATE:20271227
SUMMARY:Christmas\\, three days
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20200101
RRULE:FREQ=YEARLY
SUMMARY:New Year's Day
END:VEVENT
BEGIN:VEVENT
UID:3
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20261225
SUMMARY:Another year
END:VEVENT
END:VCALENDAR
"""


def calendar(text=CALENDAR, name="holidays.ics"):
    content = text if isinstance(text, bytes) else text.replace("\n", "\r\n").encode()
    return SimpleUploadedFile(name, content, content_type="text/calendar")


@pytest.mark.usefixtures("_in_november")
def test_calendar_is_read_into_lines(office):
    center = CenterFactory()
    preview = ask(office, center, "calendar", calendar=calendar(), lines="2027-05-01 Ours")
    assert preview.context["form"]["lines"].value().splitlines() == [
        "2027-01-01 New Year's Day",
        "2027-05-01 Ours",
        "2027-12-24 to 2027-12-26 Christmas, three days",
    ]
    ask(office, center, "write", lines=preview.context["form"]["lines"].value())
    christmas = center.closures.get(reason__startswith="Christmas")
    assert christmas.ends_at - christmas.starts_at == dt.timedelta(days=3)


@pytest.mark.usefixtures("_in_november")
def test_year_before_is_copied(office):
    center = CenterFactory()
    ask(office, center, "write", lines="2026-12-25 Christmas Day\n2026-12-31 Old year")
    # Half a day is no holiday.
    ClosureFactory(
        center=center,
        starts_at=datetime(2026, 12, 1, 7, tzinfo=UTC),
        ends_at=datetime(2026, 12, 1, 12, tzinfo=UTC),
    )
    preview = ask(office, center, "copy")
    assert [str(day["holiday"]) for day in preview.context["days"]] == [
        "2027-12-25 Christmas Day",
        "2027-12-31 Old year",
    ]


def test_leap_day_is_left_out_of_other_years():
    leap = Holiday(date(2028, 2, 29), date(2028, 2, 29), "Leap day")
    assert holidays.move_to_year([leap], 2029) == []
    assert holidays.move_to_year([leap], 2032) == [
        Holiday(date(2032, 2, 29), date(2032, 2, 29), "Leap day")
    ]


@pytest.mark.usefixtures("_in_november")
@pytest.mark.parametrize(
    ("do", "fields", "message"),
    [
        ("preview", {"lines": ""}, "Enter at least one day."),
        ("preview", {"lines": "Christmas"}, "Line 1: Enter a day such as 2027-12-25"),
        (
            "preview",
            {"lines": "2027-01-01 New Year\n2027-02-30 No day"},
            "Line 2: There is no such",
        ),
        (
            "preview",
            {"lines": "2027-12-26 to 2027-12-25 Back"},
            "The last day is before the first day.",
        ),
        (
            "preview",
            {"lines": "2027-01-01 to 2029-01-01 Long"},
            "A holiday can last for one year at most.",
        ),
        ("preview", {"lines": "1900-01-01 Old"}, "The year must be between 2000 and 2200."),
        ("preview", {"lines": f"2027-01-01 {'x' * 300}"}, "255 characters at most"),
        ("preview", {"lines": "x" * 60_001}, "60000 characters"),
        ("preview", {"lines": "2027-01-01 \0"}, "Null characters are not allowed."),
        ("write", {"lines": "2027-13-01"}, "There is no such day."),
        ("calendar", {}, "Choose a file."),
        ("calendar", {"calendar": b"\xff\xfe\x00"}, "not a valid calendar"),
        ("calendar", {"calendar": b"BEGIN:VCALENDAR"}, "not a valid calendar"),
        ("calendar", {"calendar": b"BEGIN:VEVENT\r\nEND:VEVENT\r\n"}, "not a valid calendar"),
        ("calendar", {"calendar": b"x" * (1024 * 1024 + 1)}, "larger than 1 MB"),
        ("calendar", {"calendar": CALENDAR, "year": "2025"}, ""),
        ("calendar", {"calendar": CALENDAR.replace("2020", "2090"), "year": "2080"}, "no events"),
        ("copy", {}, "no closed days in the year before"),
        ("preview", {"year": "soon", "lines": "2027-01-01"}, "Enter a whole number."),
        ("preview", {"year": "99999", "lines": "2027-01-01"}, "less than or equal to 2200"),
        ("preview", {"centers": "x", "lines": "2027-01-01"}, "is not a valid choice"),
        ("preview", {"centers": "999999999", "lines": "2027-01-01"}, "Select a valid choice"),
        ("preview", {"centers": "3000000000", "lines": "2027-01-01"}, "is not a valid choice"),
        ("preview", {"centers": "9" * 39, "lines": "2027-01-01"}, "is not a valid choice"),
        ("preview", {"centers": [], "lines": "2027-01-01"}, "This field is required."),
    ],
)
def test_invalid_holidays_show_a_message(office, do, fields, message):
    center = CenterFactory()
    if "calendar" in fields:
        fields = {**fields, "calendar": calendar(fields["calendar"])}
    answer = ask(office, center, do, **fields)
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert not models.Closure.objects.exists()


def test_holidays_require_permission_at_the_center(client, staff):
    mine, other = CenterFactory(), CenterFactory()
    client.force_login(staff("Manager", mine))
    assert client.get(f"{HOLIDAYS}?center={mine.pk}").status_code == 200
    assert client.get(f"{HOLIDAYS}?center=x").status_code == 200
    lines = "2030-12-25 Christmas Day"
    assert "Select a valid choice" in ask(client, other, "write", lines=lines).content.decode()
    assert ask(client, mine, "write", lines=lines).status_code == 302
    assert (mine.closures.count(), other.closures.count()) == (1, 0)
    client.force_login(staff("Viewer"))
    assert client.get(HOLIDAYS).status_code == 403
    assert ask(client, mine, "write", lines=lines).status_code == 403
