"""The back office pages that set up centers: hours, holidays, rooms and rates."""

import datetime as dt
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from accounts.models import CenterRole
from centers import holidays, models
from centers.holidays import Holiday
from roombook.backoffice.pagination import CappedPaginator
from tests.backoffice.counting import queries_of
from tests.centers.test_admin import errors_of, form_of
from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    OpeningHoursFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
    make_center_with_room,
)
from tests.factories_people import UserFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOLIDAYS = reverse("admin:centers_closure_holidays")


def url(model, page, *args):
    return reverse(f"admin:centers_{model}_{page}", args=args)


def edit(office, center, changes):
    """Open the page of a center, make the changes and save it."""
    address = url("center", "change", center.pk)
    return office.post(address, {**form_of(office.get(address)), **changes})


# --- The link to the timeline --------------------------------------------------------------------


def test_center_and_room_pages_link_to_the_timeline(client, staff):
    center = make_center_with_room()
    room = center.rooms.get()
    day = f"{reverse('admin:reservations_timeline')}?center={center.pk}"
    week = f"{reverse('admin:reservations_room_week')}?room={room.pk}"
    client.force_login(staff("Viewer", center))

    assert f'href="{day}"' in client.get(url("center", "change", center.pk)).text
    assert f'href="{week}"' in client.get(url("meetingroom", "change", room.pk)).text
    assert client.get(day).status_code == client.get(week).status_code == 200


def test_timeline_link_is_hidden_without_permission(client):
    center = make_center_with_room()
    builder = UserFactory(is_staff=True)
    builder.user_permissions.add(Permission.objects.get(codename="view_center"))
    client.force_login(builder)

    answer = client.get(url("center", "change", center.pk))

    assert answer.status_code == 200
    assert "timeline_url" not in answer.context


# --- Coordinates ---------------------------------------------------------------------------------


def find_zone(office, **place):
    return office.get(reverse("admin:centers_time_zone"), place).json()


def test_time_zone_view_returns_the_zone_of_coordinates(office):
    denver = find_zone(office, latitude="39.74", longitude="-104.99")
    assert denver == {"timeZone": "America/Denver", "message": ""}
    kathmandu = find_zone(office, latitude="27.7", longitude="85.3")
    assert kathmandu["timeZone"] == "Asia/Kathmandu"


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"latitude": "north", "longitude": "1"},
        {"latitude": "91", "longitude": "1"},
        {"latitude": "1", "longitude": "-181"},
        {"latitude": "nan", "longitude": "1"},
        {"latitude": "1e400", "longitude": "1"},
        {"latitude": "\0", "longitude": "1"},
    ],
)
def test_time_zone_view_rejects_invalid_coordinates(office, place):
    answer = find_zone(office, **place)
    assert answer["timeZone"] == ""
    assert answer["message"]


def test_time_zone_view_requires_permission(client, staff):
    address = reverse("admin:centers_time_zone")
    assert client.get(address).status_code == 302
    nobody = staff("Viewer")
    nobody.groups.clear()
    client.force_login(nobody)
    assert client.get(address).status_code == 403


def test_moved_center_gets_the_time_zone_of_its_coordinates(office):
    center = CenterFactory()
    assert errors_of(edit(office, center, {"latitude": "35.68", "longitude": "139.76"})) == {}
    center.refresh_from_db()
    assert center.time_zone_id == "Asia/Tokyo"


def test_entered_time_zone_is_kept(office):
    center = CenterFactory()
    typed = {"latitude": "35.68", "longitude": "139.76", "time_zone_id": "Asia/Seoul"}
    assert errors_of(edit(office, center, typed)) == {}
    center.refresh_from_db()
    assert center.time_zone_id == "Asia/Seoul"
    assert "time_zone_id" in errors_of(edit(office, center, {"time_zone_id": "Mars/Crater"}))


# --- Hours ----------------------------------------------------------------------------------------


def hours(*intervals, stored=()):
    """The form fields of a week: stored rows first, then new ones."""
    data = {
        "opening_hours-TOTAL_FORMS": len(stored) + len(intervals),
        "opening_hours-INITIAL_FORMS": len(stored),
    }
    for index, (row, (weekday, opens, closes)) in enumerate(
        [*stored, *((None, interval) for interval in intervals)]
    ):
        data[f"opening_hours-{index}-id"] = row.pk if row else ""
        data[f"opening_hours-{index}-weekday"] = weekday
        data[f"opening_hours-{index}-opens"] = opens
        data[f"opening_hours-{index}-closes"] = closes
    return data


def week(center):
    rows = center.opening_hours.order_by("weekday", "opens")
    return [(row.weekday, f"{row.opens:%H:%M}", f"{row.closes:%H:%M}") for row in rows]


def test_week_shows_seven_days_and_marks_closed_ones(office):
    center = CenterFactory()
    OpeningHoursFactory(center=center, weekday=2)
    page = office.get(url("center", "change", center.pk)).content.decode()
    assert [f'data-weekday="{day}"' in page for day in range(7)] == [True] * 7
    assert page.count('<p class="week-closed backoffice-quiet">Closed</p>') == 6


def test_day_can_have_several_intervals_and_end_at_midnight(office):
    center = CenterFactory()
    typed = hours((0, "08:00", "12:00"), (0, "13:00", "00:00"), (6, "00:00", "00:00"))
    assert errors_of(edit(office, center, typed)) == {}
    assert week(center) == [(0, "08:00", "12:00"), (0, "13:00", "00:00"), (6, "00:00", "00:00")]


def test_interval_without_times_is_deleted(office):
    center = CenterFactory()
    row = OpeningHoursFactory(center=center)
    assert errors_of(edit(office, center, hours((3, "", ""), stored=[(row, (0, "", ""))]))) == {}
    assert week(center) == []


def test_interval_can_replace_another_one(office):
    """Copying a day does this if the other day already has the second interval."""
    center = CenterFactory()
    row = OpeningHoursFactory(center=center, weekday=1, opens=time(13), closes=time(17))
    typed = hours((1, "13:00", "17:00"), stored=[(row, (1, "08:00", "12:00"))])
    assert errors_of(edit(office, center, typed)) == {}
    assert week(center) == [(1, "08:00", "12:00"), (1, "13:00", "17:00")]


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        ([(0, "08:00", "12:00"), (0, "11:00", "13:00")], "overlap on Monday"),
        ([(0, "08:00", "00:00"), (0, "22:00", "23:00")], "overlap on Monday"),
        ([(0, "08:00", "12:00"), (0, "08:00", "12:00")], "overlap on Monday"),
        ([(0, "12:00", "08:00")], "Closing comes after opening"),
        ([(0, "", "08:00")], "Enter an opening time."),
        ([(0, "08:00", "")], "Enter a closing time."),
        ([(0, "early", "08:00")], "Enter a valid time."),
        ([(9, "08:00", "09:00")], "not one of the available choices"),
        ([("x", "08:00", "09:00")], "not one of the available choices"),
        ([("", "08:00", "09:00")], "This field is required."),
    ],
)
def test_invalid_opening_hours_show_a_message(office, intervals, message):
    center = CenterFactory()
    answer = edit(office, center, hours(*intervals))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert week(center) == []


def test_concurrent_edits_of_opening_hours_are_kept(office):
    center = CenterFactory()
    monday = OpeningHoursFactory(center=center, weekday=0)
    tuesday = OpeningHoursFactory(center=center, weekday=1)
    address = url("center", "change", center.pk)
    mine = form_of(office.get(address))
    models.OpeningHours.objects.filter(pk=monday.pk).update(closes=time(20))
    mine["opening_hours-1-closes"] = "21:00"
    assert errors_of(office.post(address, mine)) == {}
    assert week(center) == [(0, "08:30", "20:00"), (1, "08:30", "21:00")]
    assert models.OpeningHours.objects.filter(pk=tuesday.pk).exists()


# --- Concurrent edits ----------------------------------------------------------------------------


def test_concurrent_edits_of_a_center_are_kept(office):
    center = CenterFactory(promo_text="Old", rank=5)
    rate = RateFactory(center=center, hourly=Decimal(25))
    address = url("center", "change", center.pk)
    mine = form_of(office.get(address))
    models.Center.objects.filter(pk=center.pk).update(promo_text="Theirs")
    models.Rate.objects.filter(pk=rate.pk).update(hourly=Decimal(30))
    assert errors_of(office.post(address, {**mine, "rank": "7", "rates-0-full_day": "150"})) == {}
    center.refresh_from_db()
    rate.refresh_from_db()
    assert (center.promo_text, center.rank) == ("Theirs", 7)
    assert (rate.hourly, rate.full_day) == (30, 150)


def test_concurrent_edits_of_the_rate_list_are_kept(office):
    rate = RateFactory(hourly=Decimal(25), half_day=Decimal(90))
    address = url("rate", "changelist")
    mine = form_of(office.get(address))
    models.Rate.objects.filter(pk=rate.pk).update(hourly=Decimal(30))
    saved = office.post(address, {**mine, "form-0-half_day": "95", "_save": "Save"})
    assert saved.status_code == 302
    rate.refresh_from_db()
    assert (rate.hourly, rate.half_day) == (30, 95)


def test_form_validates_the_current_row(office):
    """The maximum was lowered after the page was opened. The entered minimum is above it."""
    room = MeetingRoomFactory(minimum_minutes=30, maximum_minutes=300)
    address = url("meetingroom", "change", room.pk)
    mine = form_of(office.get(address))
    models.MeetingRoom.objects.filter(pk=room.pk).update(maximum_minutes=60)
    refused = office.post(address, {**mine, "minimum_minutes": "120"})
    assert "The shortest booking must not be longer than the longest." in refused.content.decode()


# --- Lists ----------------------------------------------------------------------------------------


def test_rate_list_saves_prices(office):
    rate, other = RateFactory(hourly=Decimal(25)), RateFactory(hourly=Decimal(40))
    address = url("rate", "changelist")
    data = {**form_of(office.get(address)), "form-0-hourly": "27.50", "_save": "Save"}
    assert office.post(address, data).status_code == 302
    rate.refresh_from_db()
    other.refresh_from_db()
    assert (rate.hourly, other.hourly) == (Decimal("27.50"), 40)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("0", "This makes bookings free. Open the rate"),
        ("-3", "A price must not be negative."),
        ("cheap", "Enter a number."),
    ],
)
def test_rate_list_rejects_invalid_prices(office, typed, message):
    rate = RateFactory(hourly=Decimal(25))
    address = url("rate", "changelist")
    data = {**form_of(office.get(address)), "form-0-hourly": typed, "_save": "Save"}
    assert message in office.post(address, data).content.decode()
    rate.refresh_from_db()
    assert rate.hourly == 25


def test_room_list_saves_changes(office):
    room = MeetingRoomFactory(capacity=8)
    address = url("meetingroom", "changelist")
    data = {**form_of(office.get(address)), "form-0-capacity": "10", "_save": "Save"}
    assert office.post(address, data).status_code == 302
    room.refresh_from_db()
    assert room.capacity == 10
    data["form-0-capacity"] = "0"
    assert office.post(address, data).status_code == 200


def test_list_rejects_changes_at_centers_with_view_permission_only(client, staff):
    mine, other = RateFactory(), RateFactory()
    manager = staff("Manager", mine.center)
    CenterRole.objects.create(
        user=manager, center=other.center, group=Group.objects.get(name="Viewer")
    )
    client.force_login(manager)
    address = url("rate", "changelist")
    data = form_of(client.get(address))
    row = next(index for index in (0, 1) if data[f"form-{index}-id"] == str(other.pk))
    refused = client.post(address, {**data, f"form-{row}-hourly": "1", "_save": "Save"})
    assert refused.status_code == 403
    other.refresh_from_db()
    assert other.hourly == 25


def found(office, model, text):
    page = office.get(url(model, "changelist"), {"q": text})
    return {row.name for row in page.context["cl"].result_list}


def test_room_search_finds_name_center_or_both(office):
    denver = CenterFactory(name="Glenarm", city="Denver")
    boston = CenterFactory(name="Back Bay", city="Boston", state="MA")
    for center in (denver, boston):
        MeetingRoomFactory(center=center, name=f"Aspen of {center.name}")
        MeetingRoomFactory(center=center, name=f"Juniper of {center.name}")
    assert found(office, "meetingroom", "aspen") == {"Aspen of Glenarm", "Aspen of Back Bay"}
    assert found(office, "meetingroom", "Denver") == {"Aspen of Glenarm", "Juniper of Glenarm"}
    assert found(office, "meetingroom", "aspen colorado") == {"Aspen of Glenarm"}
    assert found(office, "meetingroom", "boston JUNIPER") == {"Juniper of Back Bay"}
    assert found(office, "meetingroom", "aspen nowhere") == set()
    assert len(found(office, "meetingroom", "")) == 4


@pytest.mark.parametrize("text", ["'", "%", "\\", "\x00", "ß" * 300, " ".join("abcdefghij"), "🙂"])
@pytest.mark.parametrize("model", ["center", "meetingroom", "closure", "landmark"])
def test_unusual_search_text_does_not_break_a_list(office, model, text):
    center = make_center_with_room()
    LandmarkFactory(center=center)
    assert office.get(url(model, "changelist"), {"q": text}).status_code == 200


def test_center_list_counts_active_rooms(office):
    make_center_with_room(name="One")
    CenterFactory(name="None")
    three = CenterFactory(name="Three")
    MeetingRoomFactory.create_batch(3, center=three)
    MeetingRoomFactory(center=three, is_active=False)
    page = office.get(url("center", "changelist"))
    counts = {row.name: row.active_rooms for row in page.context["cl"].result_list}
    assert counts == {"One": 1, "None": 0, "Three": 3}


def fill(first, last):
    """Create centers with a room, a rate and a closure each."""
    kind = ResourceTypeFactory()
    numbers = range(first, last)
    centers = [
        CenterFactory.build(name=f"Center {number}", name_folded=f"center {number:04}")
        for number in numbers
    ]
    models.Center.objects.bulk_create(centers)
    rates = models.Rate.objects.bulk_create(
        models.Rate(center=center, name="Standard", hourly=25) for center in centers
    )
    models.MeetingRoom.objects.bulk_create(
        models.MeetingRoom(
            center=rate.center, name="Room", resource_type=kind, capacity=8, rate=rate
        )
        for rate in rates
    )
    day = datetime(2027, 1, 1, tzinfo=UTC)
    models.Closure.objects.bulk_create(
        models.Closure(
            center=center, starts_at=day, ends_at=day + dt.timedelta(days=1), reason="Holiday"
        )
        for center in centers
    )


def test_lists_of_2000_rows_send_no_more_queries_than_of_20(office):
    addresses = [
        f"{url(model, 'changelist')}{query}"
        for model in ("center", "meetingroom", "rate", "closure")
        for query in ("", "?q=center")
    ]
    fill(0, 20)
    few = {address: queries_of(office, address) for address in addresses}
    fill(20, 2000)
    assert {address: queries_of(office, address) for address in addresses} == few
    assert max(few.values()) <= 16


def test_center_page_with_300_rows_sends_no_more_queries_than_with_30(office):
    center = make_center_with_room()
    rate, kind = center.rates.get(), ResourceTypeFactory()

    def furnish(first, last):
        models.MeetingRoom.objects.bulk_create(
            models.MeetingRoom(
                center=center, name=f"R{number}", resource_type=kind, capacity=8, rate=rate
            )
            for number in range(first, last)
        )
        models.Rate.objects.bulk_create(
            models.Rate(center=center, name=f"Bulk {number}", hourly=5)
            for number in range(first, last)
        )
        models.Closure.objects.bulk_create(
            models.Closure(
                center=center,
                starts_at=NOW + dt.timedelta(days=400 + number),
                ends_at=NOW + dt.timedelta(days=401 + number),
            )
            for number in range(first, last)
        )

    ServiceFactory(center=center)
    address = url("center", "change", center.pk)
    furnish(0, 30)
    few = queries_of(office, address)
    # Not more: each row offers all rooms or rates to choose from.
    furnish(30, 300)
    assert queries_of(office, address) == few


@pytest.mark.parametrize("page", ["²", "x", "0", "-1", "999", "1" * 50, "\0"])
def test_invalid_page_number_of_a_tab_does_not_break_the_page(office, page):
    center = make_center_with_room()
    address = url("center", "change", center.pk)
    assert office.get(address, {"rooms-page": page}).status_code == 200


def test_rows_on_a_later_page_of_a_tab_can_be_edited(office):
    center = CenterFactory()
    for number in range(30):
        MeetingRoomFactory(center=center, name=f"Room {number:02}")
    address = f"{url('center', 'change', center.pk)}?rooms-page=2"
    data = form_of(office.get(address))
    assert data["rooms-TOTAL_FORMS"] == "5"
    assert errors_of(office.post(address, {**data, "rooms-0-capacity": "3"})) == {}
    assert center.rooms.get(name="Room 25").capacity == 3


def test_search_is_capped_like_the_list(office, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    center = CenterFactory()
    MeetingRoomFactory.create_batch(5, center=center)
    assert len(found(office, "meetingroom", "denver")) == 3


# --- Messages for constraints --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        ("center", {"tax_rate": "101"}, "less than or equal to 100"),
        ("rate", {"name": "STANDARD"}, "This center already has a rate with this name."),
        ("meetingroom", {"capacity": "0"}, "greater than or equal to 1"),
    ],
)
def test_violated_constraint_shows_a_message(office, model, fields, message):
    center = CenterFactory()
    RateFactory(center=center, name="Standard")
    row = {
        "center": center,
        "rate": RateFactory(center=center),
        "meetingroom": MeetingRoomFactory(center=center),
    }[model]
    address = url(model, "change", row.pk)
    refused = office.post(address, {**form_of(office.get(address)), **fields})
    assert message in refused.content.decode()


def test_every_constraint_of_centers_has_a_message():
    default = "Constraint “%(name)s” is violated."
    wordless = [
        constraint.name
        for model in apps.get_app_config("centers").get_models()
        for constraint in model._meta.constraints
        if str(constraint.violation_error_message) == default
    ]
    assert wordless == []


# --- Holidays -------------------------------------------------------------------------------------


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
