"""The timeline: a day of a center, and a week of a room."""

import datetime as dt

import pytest
from django.urls import reverse

from centers.models import Closure
from reservations.models.status import Status
from tests.factories_centers import MeetingRoomFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_draft,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

DAY = reverse("admin:reservations_timeline")
WEEK = reverse("admin:reservations_room_week")
ADD = reverse("admin:reservations_reservation_add")
WEDNESDAY = "2027-03-03"


def day_of(room, date=WEDNESDAY, **query):
    return {"center": room.center_id, "date": date, **query}


def bookings_of(answer):
    """The bookings of a timeline, with the titles of their rows."""
    return [
        (row["title"], item)
        for row in answer.context["timeline"].rows
        for track in row["tracks"]
        for item in track["items"]
        if "status" in item
    ]


CENTER_WEEK = reverse("admin:reservations_timeline_week")


def free_slots_of(answer, *, is_closed=False):
    return [
        item
        for row in answer.context["timeline"].rows
        for track in row["tracks"]
        for item in track["items"]
        if "status" not in item and item["is_closed"] is is_closed
    ]


def row_of(answer, title):
    return next(row for row in answer.context["timeline"].rows if row["title"] == title)


# Bookings


def test_day_timeline_shows_bookings(office, room):
    booking = ReservationFactory(room=room)
    answer = office.get(DAY, day_of(room))
    [(title, bar)] = bookings_of(answer)
    assert title == "Boardroom"
    assert (bar["name"], bar["time"], bar["status"]) == ("Ada Lovelace", "09:00-12:00", "Confirmed")
    # Open 8 to 18, shown 7 to 19: 09:00 is two of twelve hours from the left.
    assert bar["style"] == f"left:{100 * 2 / 12:.4f}%;width:25.0000%;--lane:0"
    label = f"Ada Lovelace 09:00-12:00 Confirmed, Boardroom, reservation {booking.pk}"
    page = reverse("admin:reservations_reservation_change", args=[booking.pk])
    assert f'href="{page}"' in answer.text
    assert f'aria-label="{label}"' in answer.text


def test_day_timeline_hides_statuses_without_time(office, room):
    shown = {
        *(Status.PROCESSING, Status.PENDING, Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW),
    }
    for status in Status:
        own = MeetingRoomFactory(center=room.center, rate=room.rate, name=status.value)
        ReservationFactory(room=own, status=status)
    found = {title: bar["status"] for title, bar in bookings_of(office.get(DAY, day_of(room)))}
    assert found == {status.value: status.value for status in shown}


def test_day_timeline_shows_draft_until_hold_expires(office, room, clock):
    made = make_draft(room=room)
    [(_, bar)] = bookings_of(office.get(DAY, day_of(room)))
    assert bar["label"].startswith(
        "Ada Lovelace 09:00-12:00 Draft, held until Mon 2027-03-01 09:15 MST, "
    )
    clock.move_to(made.hold_until)
    assert bookings_of(office.get(DAY, day_of(room))) == []


def test_booking_over_midnight_is_on_both_days(office, room):
    ReservationFactory(room=room, start=START + 13 * HOUR, end=START + 17 * HOUR)
    for date, before, after in ((WEDNESDAY, False, True), ("2027-03-04", True, False)):
        [(_, bar)] = bookings_of(office.get(DAY, day_of(room, date)))
        assert (bar["starts_before"], bar["ends_after"]) == (before, after)


def test_day_timeline_marks_closures_hours_and_turnaround(office, room):
    room.turnaround_minutes = 30
    room.save()
    ReservationFactory(room=room, turnaround_minutes=15)
    Closure.objects.create(
        center=room.center, starts_at=START + 5 * HOUR, ends_at=START + 6 * HOUR, reason="Drill"
    )
    other = MeetingRoomFactory(center=room.center)
    Closure.objects.create(
        center=room.center, room=other, starts_at=START, ends_at=START + HOUR, reason="Paint"
    )
    marks = row_of(office.get(DAY, day_of(room)), "Boardroom")["tracks"][0]["marks"]
    assert [kind for kind, *_ in marks] == [
        *("closed", "closed", "closure", "turnaround", "turnaround")
    ]
    assert marks[2][2] == "Drill, 14:00 - 15:00"
    # Half an hour, the longer of the two turnarounds.
    assert marks[3][1] == f"left:{100 * 1.5 / 12:.4f}%;width:{100 * 0.5 / 12:.4f}%"


def test_rooms_are_sorted_naturally_and_inactive_ones_shown_if_booked(office, room):
    for number in (10, 9, 2):
        MeetingRoomFactory(center=room.center, name=f"Room {number}")
    idle = MeetingRoomFactory(center=room.center, name="Idle", is_active=False)
    ReservationFactory(room=MeetingRoomFactory(center=room.center, name="Taken", is_active=False))
    answer = office.get(DAY, day_of(room))
    titles = [row["title"] for row in answer.context["timeline"].rows]
    assert titles == ["Boardroom", "Room 2", "Room 9", "Room 10", "Taken"]
    assert idle.name not in answer.text
    assert row_of(answer, "Taken")["note"] == "not active"


# Clocks


def test_day_with_clock_change_says_so_and_has_own_ticks_in_the_week(office, room):
    answer = office.get(DAY, day_of(room, "2026-11-01", hours="all"))
    assert len(answer.context["timeline"].header.ticks) == 25
    assert "The clock goes back by 60 minutes." in answer.text
    answer = office.get(WEEK, {"room": room.pk, "date": "2027-03-14", "hours": "all"})
    rows = answer.context["timeline"].rows
    assert [row["title"] for row in rows[-2:]] == ["Sat 2027-03-13", "Sun 2027-03-14"]
    assert [len(row["tracks"][0]["ticks"]) for row in rows] == [0, 0, 0, 0, 0, 0, 23]


def test_timeline_is_in_local_time(office):
    room = make_room(time_zone_id="Asia/Kolkata")
    start = dt.datetime(2027, 3, 3, 9, tzinfo=room.center.zone)
    ReservationFactory(room=room, start=start, end=start + HOUR)
    [(_, bar)] = bookings_of(office.get(DAY, day_of(room)))
    assert bar["time"] == "09:00-10:00"
    # Monday 16:00 in UTC is Tuesday in Apia, which once skipped a day.
    room = make_room(time_zone_id="Pacific/Apia")
    assert "Tue 2027-03-02" in office.get(DAY, {"center": room.center_id}).text
    answer = office.get(DAY, day_of(room, "2011-12-30"))
    assert "This day does not exist in the time zone of the center." in answer.text
    for page, part in ((WEEK, "rows"), (CENTER_WEEK, "columns")):
        query = {"room": room.pk, "center": room.center_id, "date": "2011-12-30"}
        assert len(getattr(office.get(page, query).context["timeline"], part)) == 6


# Free time


def test_free_slot_links_to_prefilled_reservation(office, room):
    ReservationFactory(room=room)
    first, second, *_ = free_slots_of(office.get(DAY, day_of(room)))
    assert first["href"] == (f"{ADD}?room={room.pk}&start=2027-03-03T08:00&end=2027-03-03T09:00")
    assert first["label"] == "New draft: Boardroom, Wed 2027-03-03, 08:00 - 09:00"
    # After the booking.
    assert second["label"].endswith("12:00 - 13:00")
    assert 'value="2027-03-03"' in office.get(first["href"]).text


def test_free_slots_outside_hours_require_override_permission(client, staff, room):
    for role, is_offered in (("Desk", False), ("Manager", True)):
        client.force_login(staff(role, room.center))
        closed = free_slots_of(client.get(DAY, day_of(room)), is_closed=True)
        assert bool(closed) is is_offered


def test_free_slots_exclude_past_and_unbookable_rooms(office, room, clock):
    for date in ("2027-02-26", "2029-03-03"):
        assert free_slots_of(office.get(DAY, day_of(room, date))) == []
    clock.move_to(NOW + 20 * MINUTE)
    first, *_ = free_slots_of(office.get(DAY, day_of(room, "2027-03-01")))
    # The running slot, and the quarter of an hour before it (B26.10).
    assert first["label"].endswith("09:00 - 10:00")
    for change in ({"is_blocked": True}, {"is_blocked": False, "rate": None}):
        type(room).objects.filter(pk=room.pk).update(**change)
        for is_closed in (False, True):
            answer = office.get(DAY, day_of(room))
            assert free_slots_of(answer, is_closed=is_closed) == []


@pytest.mark.parametrize(
    ("status", "first", "turnarounds"),
    [(Status.CONFIRMED, "11:30 - 12:30", 2), (Status.NO_SHOW, "08:45 - 09:45", 0)],
)
def test_rest_of_a_no_show_can_be_booked_again(office, room, status, first, turnarounds):
    ends = {"start": NOW - HOUR, "end": NOW + 2 * HOUR}
    ReservationFactory(room=room, turnaround_minutes=30, status=status, **ends)

    answer = office.get(DAY, day_of(room, "2027-03-01"))

    [offer, *_] = free_slots_of(answer)
    assert offer["label"].endswith(first)
    [track] = row_of(answer, "Boardroom")["tracks"]
    assert [kind for kind, *_ in track["marks"]].count("turnaround") == turnarounds
    # It is in a lane below the bar.
    assert track["lanes"] == 1 + offer["style"].endswith("--lane:1")
    assert track["lanes"] == (2 if status == Status.NO_SHOW else 1)


# Query parameters


def test_timeline_links_to_other_days(office, room):
    text = office.get(DAY, day_of(room)).text
    for date in ("2027-03-02", "2027-03-01", "2027-03-04"):
        assert f'href="?center={room.center_id}&amp;date={date}"' in text
    text = office.get(WEEK, {"room": room.pk, "date": WEDNESDAY}).text
    for date in ("2027-02-24", "2027-03-10"):
        assert f'href="?room={room.pk}&amp;date={date}"' in text


def test_timeline_invalid_date_shows_nothing(office, room):
    week = {"room": room.pk, "date": "2027-02-30"}
    dates = ("yesterday", "0001-01-01", "9999-12-31", "\0")
    for address, query in ((WEEK, week), *((DAY, day_of(room, date)) for date in dates)):
        answer = office.get(address, query)
        assert answer.context["timeline"] is None, query
        assert "Choose a day from 2000 to 2100, such as 2027-03-15. Nothing" in answer.text, query


def test_timeline_unknown_place_is_not_found(office, room):
    for pk in ("x", "-1", "0", "99999999999999", "\0", "1.5", "²"):
        assert office.get(DAY, {"center": pk}).status_code == 404
        assert office.get(WEEK, {"room": pk}).status_code == 404
    assert office.get(WEEK).status_code == 404
    room.center.rooms.all().delete()
    assert "This center has no active rooms." in office.get(DAY, {"center": room.center_id}).text
    room.center.delete()
    assert "There is no center to show." in office.get(DAY).text
