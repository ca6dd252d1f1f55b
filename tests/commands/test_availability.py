"""The availability command: the availability of a room on one day."""

import datetime as dt

import pytest
import time_machine
from django.core.management import CommandError

from tests.factories_centers import ClosureFactory
from tests.factories_reservations import NOW, START, make_booking, make_draft, make_room

pytestmark = pytest.mark.django_db

HOURS = "closed: It opens Mon-Sun 08:00 - 18:00."


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


def test_adjacent_slots_with_the_same_result_are_one_line(run):
    room = make_room(turnaround_minutes=15)
    reservation = make_booking(room=room)

    said = run("availability", room.pk, "--date", "2027-03-03")

    assert said.splitlines() == [
        f"Boardroom at Glenarm (room {room.pk})",
        "Wednesday, March 3, 2027, America/Denver",
        f"  00:00 - 08:00  {HOURS}",
        "  08:00 - 08:45  available",
        f"  08:45 - 12:15  held: Reservation {reservation.pk} (Confirmed), Wed 2027-03-03 09:00"
        " - 12:00, 15 minutes of turnaround",
        "  12:15 - 18:00  available",
        f"  18:00 - 24:00  {HOURS}",
    ]


def test_all_reasons_are_printed(run):
    room = make_room(is_blocked=True)
    ClosureFactory(
        center=room.center,
        starts_at=START - dt.timedelta(hours=9),
        ends_at=START + dt.timedelta(hours=15),
    )

    lines = run("availability", room.pk, "--date", "2027-03-03").splitlines()

    assert lines[2:5] == [
        "  00:00 - 08:00  room-blocked: The room is blocked by staff.",
        f"                 {HOURS}",
        "                 closure: Holiday: Wed 2027-03-03 00:00 - Thu 2027-03-04 00:00",
    ]


def test_gap_too_short_for_a_booking_is_marked(run):
    room = make_room()
    make_draft(room=room, hours=1)
    make_draft(room=room, start=START + dt.timedelta(minutes=75), hours=1)

    lines = run("availability", room.pk, "--date", "2027-03-03").splitlines()

    assert (
        "  10:00 - 10:15  available, but the shortest booking of this room is 30 minutes." in lines
    )


def test_today_is_the_local_day_and_started_slots_are_past(run, settings):
    # 16:00 UTC on March 1 is March 2 in Auckland.
    room = make_room(time_zone_id="Pacific/Auckland")

    lines = run("availability", room.pk).splitlines()

    assert lines[1] == "Tuesday, March 2, 2027, Pacific/Auckland"
    assert lines[2].startswith("  00:00 - 05:00  past:")
    settings.LOCALE = "en_NZ"
    assert "\nTuesday, 2 March 2027, Pacific/Auckland\n" in run("availability", room.pk)


def test_day_of_dst_change_shows_offsets(run):
    room = make_room()
    room.center.is_after_hours_support_enabled = True
    room.center.save()

    spring = run("availability", room.pk, "--date", "2027-03-14").splitlines()
    autumn = run("availability", room.pk, "--date", "2027-11-07").splitlines()

    assert spring[2:] == ["  00:00 -0700 - 24:00 -0600  available"]
    assert autumn[2:] == ["  00:00 -0600 - 24:00 -0700  available"]


def test_grid_of_the_room_is_used(run):
    room = make_room(grid_minutes=60)
    reservation = make_booking(room=room)

    said = run("availability", room.pk, "--date", "2027-03-03")

    assert f"  09:00 - 12:00  held: Reservation {reservation.pk}" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((77777,), "There is no room 77777."),
        (("x",), "'x' is not a whole number"),
        ((1, "--date", "tomorrow"), "'tomorrow' is not a day, such as 2027-03-01"),
        ((), "required"),
    ],
)
def test_invalid_input_is_refused(run, words, expected):
    with pytest.raises(CommandError) as refusal:
        run("availability", *words)

    assert expected in str(refusal.value)


@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31"])
def test_dates_at_the_calendar_limits_are_handled(run, date):
    with pytest.raises(CommandError, match="out of range"):
        run("availability", make_room().pk, "--date", date)
