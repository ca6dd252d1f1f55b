"""The timeline: a day or a week of a center, a week of a room, and what its scripts ask for."""

import datetime as dt
import html
import json
import re

import pytest
from django.urls import reverse

from centers.models import Closure, MeetingRoom
from reservations.models import Reservation
from reservations.models.status import Status
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, fill_slot, reservation_url
from tests.factories_centers import MeetingRoomFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

DAY = reverse("admin:reservations_timeline")
CENTER_WEEK = reverse("admin:reservations_timeline_week")
ROOM_WEEK = reverse("admin:reservations_room_week")
ADD = reverse("admin:reservations_reservation_add")
WEDNESDAY = "2027-03-03"
SCRIPT = {"X-Requested-With": "fetch"}


def day_of(room, date=WEDNESDAY, /, **query):
    return {"center": room.center_id, "date": date, **query}


def items_of(page):
    """What lies on the tracks, with the titles of their rows and the numbers of their tracks."""
    return [
        (row["title"], number, item)
        for row in page.context["timeline"].rows
        for number, track in enumerate(row["tracks"])
        for item in track["items"]
    ]


def bookings_of(page):
    return [(title, item) for title, _, item in items_of(page) if "status" in item]


def free_slots_of(page, *, is_closed=False):
    return [
        item
        for _, _, item in items_of(page)
        if "status" not in item and item["is_closed"] is is_closed
    ]


def row_of(page, title):
    return next(row for row in page.context["timeline"].rows if row["title"] == title)


def move(booking, by):
    booking.start += by
    booking.end += by
    booking.version += 1
    booking.save()


# --- Bookings and marks ---------------------------------------------------------------------------


def test_day_timeline_shows_bookings_with_their_status(office, room):
    booking = ReservationFactory(room=room)
    page = office.get(DAY, day_of(room))
    [(title, bar)] = bookings_of(page)
    assert title == "Boardroom"
    assert (bar["name"], bar["time"], bar["status"]) == ("Ada Lovelace", "09:00-12:00", "Confirmed")
    # Open 8 to 18, shown 7 to 19: 09:00 is two of twelve hours from the left.
    assert bar["style"] == f"left:{100 * 2 / 12:.4f}%;width:25.0000%;--lane:0"
    assert f'href="{reservation_url(booking)}"' in page.text
    Reservation.objects.update(checked_in_at=START)
    assert "<em>Checked in</em>" in office.get(DAY, day_of(room)).text


def test_day_timeline_hides_statuses_without_time(office, room, clock):
    for status in Status:
        own = MeetingRoomFactory(center=room.center, rate=room.rate, name=status.value)
        ReservationFactory(room=own, status=status)
    found = {title: bar["status"] for title, bar in bookings_of(office.get(DAY, day_of(room)))}
    shown = ("Processing", "Pending", "Confirmed", "Completed", "NoShow")
    assert found == {status: status for status in shown}
    # A draft is shown as long as it holds the room.
    Reservation.objects.all().delete()
    draft = make_draft(room=room)
    [(_, bar)] = bookings_of(office.get(DAY, day_of(room)))
    assert " Draft, held until Mon 2027-03-01 09:15 MST, " in bar["label"]
    clock.move_to(draft.hold_until)
    assert bookings_of(office.get(DAY, day_of(room))) == []


def test_booking_over_midnight_is_on_both_days(office, room):
    ReservationFactory(room=room, start=START + 13 * HOUR, end=START + 17 * HOUR)
    for date, before, after in ((WEDNESDAY, False, True), ("2027-03-04", True, False)):
        [(_, bar)] = bookings_of(office.get(DAY, day_of(room, date)))
        assert (bar["starts_before"], bar["ends_after"]) == (before, after)


def test_day_timeline_marks_closures_hours_and_turnaround(office, room):
    MeetingRoom.objects.update(turnaround_minutes=30)
    ReservationFactory(room=room, turnaround_minutes=15)
    other = MeetingRoomFactory(center=room.center)
    for closed, hour, reason in ((None, 5, "Drill"), (other, 0, "Paint")):
        starts_at = START + hour * HOUR
        Closure.objects.create(
            center=room.center,
            room=closed,
            starts_at=starts_at,
            ends_at=starts_at + HOUR,
            reason=reason,
        )
    marks = row_of(office.get(DAY, day_of(room)), "Boardroom")["tracks"][0]["marks"]
    kinds = ["closed", "closed", "closure", "turnaround", "turnaround"]
    assert [kind for kind, *_ in marks] == kinds
    assert marks[2][2] == "Drill, 14:00 - 15:00"
    # Half an hour, the longer of the two turnarounds.
    assert marks[3][1] == f"left:{100 * 1.5 / 12:.4f}%;width:{100 * 0.5 / 12:.4f}%"


def test_inactive_rooms_are_shown_if_they_are_booked(office, room):
    MeetingRoomFactory(center=room.center, name="Idle", is_active=False)
    ReservationFactory(room=MeetingRoomFactory(center=room.center, name="Taken", is_active=False))
    rows = office.get(DAY, day_of(room)).context["timeline"].rows
    assert [row["title"] for row in rows] == ["Boardroom", "Taken"]


def test_center_week_shows_bookings_by_room_and_day(office, room):
    other = MeetingRoomFactory(center=room.center, name="Annex")
    ReservationFactory(room=room)
    ReservationFactory(room=other, start=START + 48 * HOUR, end=START + 50 * HOUR)

    page = office.get(CENTER_WEEK, day_of(room))

    assert [(title, day) for title, day, _ in items_of(page)] == [("Annex", 4), ("Boardroom", 2)]


def test_day_with_clock_change_says_so_and_has_own_ticks(office, room):
    page = office.get(ROOM_WEEK, {"room": room.pk, "date": "2027-03-14", "hours": "all"})
    rows = page.context["timeline"].rows
    assert [len(row["tracks"][0]["ticks"]) for row in rows] == [0, 0, 0, 0, 0, 0, 23]
    page = office.get(DAY, day_of(room, "2027-11-07", hours="all"))
    assert len(page.context["timeline"].header.ticks) == 25
    assert "The clock goes back by 60 minutes." in page.text
    # Scripts get the axis of a track.
    [track] = page.context["timeline"].rows[0]["tracks"]
    assert (track["minutes"], track["slot_minutes"], track["room"].pk) == (25 * 60, 15, room.pk)
    clock = [[0, "2027-11-07T00:00"], [120, ""], [180, "2027-11-07T02:00"]]
    assert json.loads(track["clock"]) == clock


def test_timeline_is_in_local_time(office):
    room = make_room(time_zone_id="Asia/Kolkata")
    start = dt.datetime(2027, 3, 3, 9, tzinfo=room.center.zone)
    ReservationFactory(room=room, start=start, end=start + HOUR)
    [(_, bar)] = bookings_of(office.get(DAY, day_of(room)))
    assert bar["time"] == "09:00-10:00"
    # Monday 16:00 in UTC is Tuesday in Apia, which once skipped a day.
    room = make_room(time_zone_id="Pacific/Apia")
    assert "Tue 2027-03-02" in office.get(DAY, {"center": room.center_id}).text
    page = office.get(DAY, day_of(room, "2011-12-30"))
    assert "This day does not exist in the time zone of the center." in page.text
    for url, part in ((ROOM_WEEK, "rows"), (CENTER_WEEK, "columns")):
        timeline = office.get(url, day_of(room, "2011-12-30", room=room.pk)).context["timeline"]
        assert len(getattr(timeline, part)) == 6


# --- Free time ------------------------------------------------------------------------------------


def test_free_slot_links_to_prefilled_reservation(office, room):
    ReservationFactory(room=room)
    first, second, *_ = free_slots_of(office.get(DAY, day_of(room)))
    assert first["href"] == (f"{ADD}?room={room.pk}&start=2027-03-03T08:00&end=2027-03-03T09:00")
    # After the booking.
    assert second["label"].endswith("12:00 - 13:00")


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
        MeetingRoom.objects.update(**change)
        assert free_slots_of(office.get(DAY, day_of(room))) == []


def test_rest_of_a_no_show_can_be_booked_again_in_a_lane_below_it(office, room):
    times = {"start": NOW - HOUR, "end": NOW + 2 * HOUR}
    ReservationFactory(room=room, turnaround_minutes=30, status=Status.NO_SHOW, **times)

    page = office.get(DAY, day_of(room, "2027-03-01"))

    offer, *_ = free_slots_of(page)
    assert offer["label"].endswith("08:45 - 09:45")
    [track] = row_of(page, "Boardroom")["tracks"]
    assert "turnaround" not in [kind for kind, *_ in track["marks"]]
    assert (track["lanes"], offer["style"].endswith("--lane:1")) == (2, True)


def test_unknown_place_and_invalid_date_of_a_timeline_are_not_shown(office, room):
    page = office.get(ROOM_WEEK, {"room": room.pk, "date": "2027-02-30"})
    assert page.context["timeline"] is None
    for pk in ("0", "99999999999999", "\0", "²"):
        assert office.get(DAY, {"center": pk}).status_code == 404
        assert office.get(ROOM_WEEK, {"room": pk}).status_code == 404
    assert office.get(ROOM_WEEK).status_code == 404


def test_timeline_without_center_shows_the_last_or_first_visible_center(client, staff, room):
    second = make_room().center
    user = staff("Desk", room.center, second)
    client.force_login(user)
    client.get(CENTER_WEEK, {"center": second.pk})
    assert client.get(DAY).context["center"] == second
    # Once the role there is gone, the center is not shown.
    user.center_roles.filter(center=second).delete()
    assert client.get(DAY).context["center"] == room.center


# --- Asking for changes ---------------------------------------------------------------------------


@pytest.mark.parametrize("url", [DAY, CENTER_WEEK, ROOM_WEEK])
def test_unchanged_timeline_is_answered_with_304(office, clock, room, url):
    query = day_of(room, room=room.pk)
    booking = ReservationFactory(room=room, user=UserFactory(first_name="Ada"))
    etag = re.search('data-etag="(.+?)"', office.get(url, query).text)[1].replace("&quot;", '"')

    def ask(etag=etag):
        return office.get(url, query, headers={**SCRIPT, "If-None-Match": etag})

    assert (ask().status_code, ask().content, ask().templates) == (304, b"", [])
    # A proxy that compresses makes the ETag weak.
    assert ask(f"W/{etag}").status_code == 304
    clock.move_to(NOW + MINUTE)
    assert ask().status_code == 304

    changes = (
        lambda: move(booking, HOUR),
        lambda: Reservation.objects.update(status=Status.PENDING),
        lambda: type(booking.user).objects.filter(pk=booking.user_id).update(first_name="Bo"),
        lambda: MeetingRoom.objects.filter(pk=room.pk).update(is_blocked=True),
        lambda: room.center.opening_hours.update(opens=dt.time(6)),
        lambda: Closure.objects.create(
            center=room.center, starts_at=START, ends_at=START + HOUR, reason="Drill"
        ),
        lambda: clock.move_to(NOW + 10 * MINUTE),
    )
    for number, change in enumerate(changes):
        change()
        answer = ask(etag)
        assert answer.status_code == 200, number
        assert "<html" not in answer.text
        etag = answer["ETag"]
        assert ask(etag).status_code == 304, number


@pytest.mark.parametrize("url", [DAY, ROOM_WEEK])
def test_open_timeline_keeps_its_center_and_day(client, staff, clock, room, url):
    clock.move_to(NOW + 14 * HOUR)  # 23:00 in Denver
    client.force_login(staff("Desk"))
    other = make_room().center
    client.get(DAY, {"center": room.center_id})
    query = {"room": room.pk} if url == ROOM_WEEK else {}
    page = client.get(url, {**query, "hours": "all"})
    client.get(DAY, {"center": other.pk})  # in another tab
    clock.move_to(NOW + 16 * HOUR)
    parameters = html.unescape(re.search('data-address="(.+?)"', page.text)[1])

    rows = client.get(f"{url}{parameters}", headers=SCRIPT).context

    for name in ("center", "day", "whole_day"):
        assert rows[name] == page.context[name]
    assert client.get(DAY).context["center"] == other


def test_asking_for_changes_takes_no_messages_of_other_pages(office):
    booking = make_booking()
    office.post(action_url(booking, "cancel"), {"confirmed": "yes"})

    polled = office.get(DAY, day_of(booking.room), headers={**SCRIPT, "If-None-Match": '"old"'})
    refreshed = office.get(DAY, day_of(booking.room), headers=SCRIPT)

    assert "data-level" not in polled.text
    assert 'data-level="success"' in refreshed.text


# --- Moving, and the panel ------------------------------------------------------------------------


def test_only_bookings_that_can_be_rescheduled_can_be_moved(client, staff, clock, room):
    ReservationFactory(room=room)
    # The other one begins on the day before, so that only its end is here.
    ReservationFactory(room=room, start=START - 20 * HOUR, end=START - HOUR)

    for at, role, expected in (
        (NOW, "Desk", [False, True]),
        (START, "Desk", [False, False]),
        (NOW, "Viewer", [False, False]),
    ):
        clock.move_to(at)
        client.force_login(staff(role, room.center))
        bars = bookings_of(client.get(DAY, day_of(room)))
        assert [bool(bar["move_url"]) for _, bar in bars] == expected, (at, role)


def find_version(office, booking):
    [(_, bar)] = bookings_of(office.get(DAY, day_of(booking.room)))
    return str(bar["version"])


def test_move_at_the_same_price_is_undone_unless_it_moved_again(office):
    booking = make_booking()
    url, version = action_url(booking, "move"), find_version(office, booking)
    drop = fill_slot(booking.room, START + HOUR, expected_version=version)

    preview = office.post(url, drop, headers=SCRIPT)
    assert "data-can-be-undone" in preview.text
    undo = {**preview.context["preview"].undo, "confirmed": "yes"}
    assert undo["expected_version"] != version
    office.post(url, {**drop, "confirmed": "yes", "expected_amount": "75.00"})
    booking.refresh_from_db()
    assert booking.start == START + HOUR

    office.post(url, undo)
    booking.refresh_from_db()
    assert (booking.start, booking.total_cost) == (START, 75)
    # It is where it was, so the undo of the former move is stale.
    again = office.post(url, undo)
    assert "It was changed meanwhile, and is in Boardroom" in messages_of(again)[-1][1]


def test_move_at_another_price_has_to_be_confirmed_and_one_that_costs_more_be_allowed(office):
    booking = make_booking()

    def drop(**fields):
        return office.post(action_url(booking, "move"), fields, headers=SCRIPT)

    less = drop(**fill_slot(booking.room, hours=2))
    assert "data-can-be-undone" not in less.text
    assert 'name="confirmed"' in less.text
    longer = fill_slot(booking.room, hours=5, in_panel="yes")
    more = drop(**longer)
    assert "Not possible" in words(more)
    assert 'name="waiver"' in more.text
    assert 'name="confirmed"' in drop(**longer, waiver="Leak").text
