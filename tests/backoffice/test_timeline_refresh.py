"""The timeline for its scripts: the week of a center, moving, the panel, and asking for changes."""

import datetime as dt
import html
import json
import re

import pytest
from django.urls import reverse

from centers.models import Closure, MeetingRoom
from reservations.models import Reservation
from reservations.models.status import Status
from tests.backoffice.many import many
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
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

DAY = reverse("admin:reservations_timeline")
CENTER_WEEK = reverse("admin:reservations_timeline_week")
ROOM_WEEK = reverse("admin:reservations_room_week")
WEDNESDAY = "2027-03-03"
SCRIPT = {"X-Requested-With": "fetch"}


def bars_of(response):
    return [
        (row["title"], number, item)
        for row in response.context["timeline"].rows
        for number, track in enumerate(row["tracks"])
        for item in track["items"]
    ]


def move(booking, by):
    booking.start += by
    booking.end += by
    booking.version += 1
    booking.save()


# The week of a center


def test_center_week_shows_bookings_by_room_and_day(office, room):
    other = MeetingRoomFactory(center=room.center, name="Annex")
    ReservationFactory(room=room)
    ReservationFactory(room=other, start=START + 48 * HOUR, end=START + 50 * HOUR)

    page = office.get(CENTER_WEEK, {"center": room.center_id, "date": WEDNESDAY})

    assert [(title, day) for title, day, _ in bars_of(page)] == [("Annex", 4), ("Boardroom", 2)]
    columns = page.context["timeline"].columns
    assert (len(columns), columns[0]["title"]) == (7, "Mon 2027-03-01")
    assert columns[0]["is_today"]
    assert page.context["title"].endswith("Mon 2027-03-01 - Sun 2027-03-07")


# The last center


def test_timeline_without_center_shows_the_last_or_first_visible_center(client, staff, room):
    second = make_room().center
    client.force_login(staff("Desk"))
    client.get(CENTER_WEEK, {"center": second.pk})
    assert client.get(DAY).context["center"] == second
    client.get(ROOM_WEEK, {"room": room.pk})
    assert client.get(DAY).context["center"] == room.center
    # Once the role there is gone, the center is not shown.
    client.force_login(staff("Desk", room.center))
    session = client.session
    session["timeline_center"] = second.pk
    session.save()
    assert client.get(DAY).context["center"] == room.center


# The status


def test_bars_name_the_status(office, room):
    booking = ReservationFactory(room=room)
    query = {"center": room.center_id, "date": WEDNESDAY}
    for checked_in_at, status in ((None, "Confirmed"), (START, "Checked in")):
        Reservation.objects.update(checked_in_at=checked_in_at)
        page = office.get(DAY, query)
        assert f"<em>{status}</em>" in page.text
        assert f"{status}, Boardroom, reservation {booking.pk}" in page.text


# Asking for changes


@pytest.mark.parametrize("address", [DAY, CENTER_WEEK, ROOM_WEEK])
def test_unchanged_timeline_is_answered_with_304(office, clock, room, address):
    query = {"center": room.center_id, "room": room.pk, "date": WEDNESDAY}
    booking = ReservationFactory(room=room, user=UserFactory(first_name="Ada"))
    etag = re.search('data-etag="(.+?)"', office.get(address, query).text)[1].replace("&quot;", '"')

    def ask(etag=etag):
        return office.get(address, query, headers={**SCRIPT, "If-None-Match": etag})

    unchanged = ask()
    assert (unchanged.status_code, unchanged.content) == (304, b"")
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


@pytest.mark.parametrize("address", [DAY, CENTER_WEEK, ROOM_WEEK])
def test_open_timeline_keeps_its_center_and_day(client, staff, clock, room, address):
    clock.move_to(NOW + 14 * HOUR)  # 23:00 in Denver
    client.force_login(staff("Desk"))
    other = make_room().center
    client.get(DAY, {"center": room.center_id})
    query = {"room": room.pk} if address == ROOM_WEEK else {}
    page = client.get(address, {**query, "hours": "all"})
    client.get(DAY, {"center": other.pk})  # in another tab
    clock.move_to(NOW + 16 * HOUR)
    parameters = html.unescape(re.search('data-address="(.+?)"', page.text)[1])

    rows = client.get(f"{address}{parameters}", headers=SCRIPT).context

    for name in ("center", "day", "whole_day"):
        assert rows[name] == page.context[name]
    assert client.get(DAY).context["center"] == other


def test_timeline_is_not_rendered_if_unchanged(office, room, django_assert_max_num_queries):
    many(room, UserFactory(), 50, start=START)
    query = {"center": room.center_id, "date": WEDNESDAY}
    etag = office.get(DAY, query, headers=SCRIPT)["ETag"]
    with django_assert_max_num_queries(10):
        answer = office.get(DAY, query, headers={**SCRIPT, "If-None-Match": etag})
    assert answer.templates == []


def test_asking_for_changes_takes_no_messages_of_other_pages(office):
    booking = make_booking()
    query = {"center": booking.room.center_id, "date": WEDNESDAY}
    office.post(action_url(booking, "cancel"), {"confirmed": "yes"})

    polled = office.get(DAY, query, headers={**SCRIPT, "If-None-Match": '"old"'})
    refreshed = office.get(DAY, query, headers=SCRIPT)

    assert "data-level" not in polled.text
    assert 'data-level="success"' in refreshed.text


# Moving


def test_only_bookings_that_can_be_rescheduled_can_be_moved(client, staff, clock, room):
    ReservationFactory(room=room)
    ReservationFactory(room=room, start=START - 20 * HOUR, end=START - HOUR)
    client.force_login(staff("Desk", room.center))
    query = {"center": room.center_id, "date": WEDNESDAY}

    def movable():
        bars = [bar for _, _, bar in bars_of(client.get(DAY, query)) if "name" in bar]
        return [bool(bar["move_url"]) for bar in bars]

    # The other one begins on the day before, so that only its end is here.
    assert movable() == [False, True]
    clock.move_to(START)
    client.force_login(staff("Desk", room.center))
    assert movable() == [False, False]
    clock.move_to(NOW)
    client.force_login(staff("Viewer", room.center))
    assert movable() == [False, False]


def test_track_describes_its_axis_for_scripts(office, room):
    page = office.get(DAY, {"center": room.center_id, "date": "2027-11-07", "hours": "all"})
    [track] = page.context["timeline"].rows[0]["tracks"]
    assert (track["minutes"], track["slot_minutes"], track["room"].pk) == (25 * 60, 15, room.pk)
    assert json.loads(track["clock"]) == [
        *([0, "2027-11-07T00:00"], [120, ""], [180, "2027-11-07T02:00"])
    ]


def find_version(office, booking):
    query = {"center": booking.room.center_id, "date": WEDNESDAY}
    [version] = [
        str(bar["version"]) for _, _, bar in bars_of(office.get(DAY, query)) if "name" in bar
    ]
    return version


def test_move_at_the_same_price_is_undone_unless_it_moved_again(office):
    booking = make_booking()
    address = action_url(booking, "move")
    version = find_version(office, booking)
    drop = fill_slot(booking.room, START + HOUR, expected_version=version)

    preview = office.post(address, drop, headers=SCRIPT)
    assert "data-can-be-undone" in preview.text
    undo = {**preview.context["preview"].undo, "confirmed": "yes"}
    assert undo["expected_version"] != version
    office.post(address, {**drop, "confirmed": "yes", "expected_amount": "75.00"})
    booking.refresh_from_db()
    assert booking.start == START + HOUR

    office.post(address, undo)
    booking.refresh_from_db()
    assert (booking.start, booking.total_cost) == (START, 75)
    # It is where it was, so the undo of the former move is stale.
    again = office.post(address, undo)
    assert "It was changed meanwhile, and is in Boardroom" in messages_of(again)[-1][1]


def test_move_of_a_stale_page_is_refused(office):
    booking = make_booking()
    version = find_version(office, booking)
    move(booking, 2 * HOUR)
    drop = fill_slot(booking.room, START + HOUR, expected_version=version)

    preview = office.post(action_url(booking, "move"), drop, headers=SCRIPT)
    confirmed = {**drop, "confirmed": "yes", "expected_amount": "75.00"}
    forced = office.post(action_url(booking, "move"), confirmed)

    text = "It was changed meanwhile, and is in Boardroom at Glenarm, Wed 2027-03-03 11:00 - 14:00."
    assert text in words(preview)
    assert text in messages_of(forced)[0][1]
    assert Reservation.objects.get().start == START + 2 * HOUR


def test_move_at_another_price_has_to_be_confirmed(office):
    booking = make_booking()
    drop = fill_slot(booking.room, START, hours=2)
    preview = office.post(action_url(booking, "move"), drop, headers=SCRIPT)
    assert "data-can-be-undone" not in preview.text
    assert 'name="confirmed"' in preview.text


# The panel


def test_panel_shows_a_summary_with_actions(office):
    booking = make_booking()
    booking.user.phone_number = "+1 303 555 0100"
    booking.user.save()
    panel = office.get(reservation_url(booking), headers=SCRIPT)
    text = words(panel)
    assert "<html" not in panel.text
    for shown in ("Ada Lovelace", "+1 303 555 0100", "Confirmed", "$75.00", "Open the reservation"):
        assert shown in text
    assert action_url(booking, "move") in panel.text


def test_move_that_costs_more_offers_the_fields_that_allow_it(office):
    booking = make_booking()
    drop = fill_slot(booking.room, START, hours=5, in_panel="yes")
    more = office.post(action_url(booking, "move"), drop, headers=SCRIPT)
    assert "Not possible" in words(more)
    assert 'name="waiver"' in more.text
    # The room and the time are those of the drop.
    for name in ("room", "start_0", "end_1"):
        assert f'<input type="hidden" name="{name}"' in more.text
    drop |= {"waiver": "Leak"}
    waived = office.post(action_url(booking, "move"), drop, headers=SCRIPT)
    assert 'name="confirmed"' in waived.text
    # Nothing can be done about a room that is taken.
    ReservationFactory(room=booking.room, start=START + 4 * HOUR, end=START + 5 * HOUR)
    taken = office.post(action_url(booking, "move"), drop, headers=SCRIPT)
    assert "Not possible" in words(taken)
    assert "data-live" not in taken.text
