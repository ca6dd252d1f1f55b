"""The utilization report: open and sold time, in the local time of each center."""

import datetime as dt
from collections import Counter
from zoneinfo import ZoneInfo

import pytest

from centers.span import Span
from reservations.local_days import LocalDays
from reservations.models.status import Status
from reservations.reports import utilization
from reservations.reports.selection import ReportSelection
from reservations.reports.utilization import split_by_weekday_hour
from tests import factories_centers as make
from tests.factories_reservations import ReservationFactory, make_room

HOUR = 3600
DENVER = ZoneInfo("America/Denver")
MONDAY = dt.date(2027, 3, 1)
WEEK = LocalDays(MONDAY, dt.date(2027, 3, 7))


def local(text, zone=DENVER):
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(dt.UTC)


def sold(room, start, end, status=Status.CONFIRMED, **fields):
    return ReservationFactory(
        room=room, start=local(start), end=local(end), status=status, **fields
    )


def hours(sums):
    return tuple(sums[name] / HOUR for name in ("opened", "sold", "outside"))


@pytest.mark.parametrize(
    ("start", "hours", "cells"),
    [
        ("2027-03-01T09:30", 2.75, {(0, 9): 0.5, (0, 10): 1, (0, 11): 1, (0, 12): 0.25}),
        # Denver goes forward at 2 on 14 March and back at 2 on 7 November.
        ("2027-03-14T00:00", 4, {(6, 0): 1, (6, 1): 1, (6, 3): 1, (6, 4): 1}),
        ("2027-11-07T00:00", 4, {(6, 0): 1, (6, 1): 2, (6, 2): 1}),
    ],
)
def test_split_by_weekday_hour_uses_local_hours(start, hours, cells):
    whole = Span(local(start), local(start) + dt.timedelta(hours=hours))
    found = split_by_weekday_hour(whole, DENVER)
    assert {cell: seconds / HOUR for cell, seconds in found.items()} == cells


def test_used_time_without_open_time_has_no_share():
    assert utilization.UTILIZATION.read(Counter(outside=HOUR)) is None


@pytest.fixture
def room(db):
    """Open 8 to 18 every day, in Denver."""
    return make_room()


def of(period=WEEK, **also):
    return utilization.measure_utilization(ReportSelection(period, **also))


def test_utilization_of_bookings_within_hours(room):
    sold(room, "2027-03-01T09:00", "2027-03-01T12:00")
    sold(room, "2027-03-02T09:00", "2027-03-02T10:30", Status.COMPLETED)
    sold(room, "2027-03-03T09:00", "2027-03-03T11:00", Status.NO_SHOW)
    others = (Status.PROCESSING, Status.PENDING, Status.CANCELLED, Status.EXPIRED)
    for day, status in enumerate(others, 4):
        sold(room, f"2027-03-0{day}T09:00", f"2027-03-0{day}T12:00", status)

    found = of()

    assert hours(found.rooms.total) == (70, 6.5, 0)
    assert found.rooms.total["bookings"] == 3
    times = found.times.by("weekday", "hour")
    assert hours(times[0, 9]) == (1, 1, 0)
    assert hours(times[1, 10]) == (1, 0.5, 0)
    assert hours(found.times.by("weekday")[2,]) == (10, 2, 0)


def test_utilization_time_outside_hours_or_the_period_is_separate(room):
    sold(room, "2027-03-01T17:00", "2027-03-01T20:00")
    sold(room, "2027-02-28T16:00", "2027-03-01T09:00")

    found = of()

    assert hours(found.rooms.total) == (70, 2, 10)
    assert found.times.total["sold"] == 2 * HOUR
    assert hours(of(LocalDays(MONDAY, MONDAY)).rooms.total) == (10, 2, 10)


def test_utilization_closures_reduce_open_time(room):
    make.MeetingRoomFactory(center=room.center)
    for closed, start, end in (
        (None, "2027-03-01T00:00", "2027-03-02T00:00"),
        (room, "2027-03-01T17:00", "2027-03-02T10:00"),
    ):
        times = {"starts_at": local(start), "ends_at": local(end)}
        make.ClosureFactory(center=room.center, room=closed, **times)

    found = of()

    assert sorted(hours(used)[0] for used in found.rooms.by("room").values()) == [58, 60]
    assert found.rooms.total["opened"] == found.times.total["opened"] == 118 * HOUR


def test_utilization_uses_local_days(db):
    """A Monday morning in Auckland is a Sunday evening in UTC."""
    zone = ZoneInfo("Pacific/Auckland")
    room = make_room(time_zone_id="Pacific/Auckland")
    ReservationFactory(
        room=room,
        start=local("2027-03-01T08:00", zone),
        end=local("2027-03-01T10:00", zone),
    )

    found = of(LocalDays(MONDAY, MONDAY))

    assert hours(found.rooms.total) == (10, 2, 0)
    assert found.times.by("weekday", "hour")[0, 8]["sold"] == HOUR


def test_utilization_inactive_room_counts_if_booked(room):
    idle = make.MeetingRoomFactory(center=room.center, is_active=False)
    used = make.MeetingRoomFactory(center=room.center, is_active=False)
    sold(used, "2027-03-01T09:00", "2027-03-01T12:00")

    found = {each.pk: hours(used) for (each,), used in of().rooms.by("room").items()}

    assert found == {room.pk: (70, 0, 0), used.pk: (70, 3, 0)}
    assert idle.pk not in found


def test_utilization_is_limited_to_selection(room):
    other = make.MeetingRoomFactory(center=room.center)
    elsewhere = make_room()
    for each in (room, other, elsewhere):
        sold(each, "2027-03-01T09:00", "2027-03-01T12:00")

    here = of(centers=frozenset({room.center_id}))
    of_type = of(room_types=frozenset({other.resource_type_id}))

    assert {each.pk for (each,) in here.rooms.by("room")} == {room.pk, other.pk}
    assert {each.pk for (each,) in of_type.rooms.by("room")} == {other.pk}
    assert of(centers=frozenset()).rooms.by("room") == {}
