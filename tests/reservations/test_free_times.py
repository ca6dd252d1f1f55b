"""Free times agree with the availability evaluator, in random worlds (B11.5)."""

import datetime as dt
import os
import random
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from centers import hours
from centers.models import OpeningHours
from centers.rooms import get_booking_rules, get_room
from centers.span import Span, get_local_midnight
from reservations import availability, free_times
from reservations.models.status import Status
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, MINUTE, ReservationFactory

pytestmark = pytest.mark.django_db

WORLDS, PROBES = (2600, 80) if os.environ.get("FAULTS") == "long" else (30, 40)
DAY = dt.timedelta(days=1)
# Days on which the clock changes: by an hour, by half an hour, and at midnight.
PLACES = [
    ("America/Denver", dt.date(2027, 3, 14)),
    ("America/Denver", dt.date(2027, 11, 7)),
    ("Australia/Lord_Howe", dt.date(2027, 4, 4)),
    ("Africa/Cairo", dt.date(2027, 4, 30)),
    ("Asia/Tokyo", dt.date(2027, 5, 12)),
]
HOURS = [dt.time(0), dt.time(2, 10), dt.time(8, 30), dt.time(12), dt.time(17), dt.time(23, 45)]


class RandomWorld:
    """A room with random rules, hours, closures and reservations around a change of the clock."""

    def __init__(self, seed):
        self.random = choice = random.Random(seed)
        zone, day = choice.choice(PLACES)
        self.zone = ZoneInfo(zone)
        self.user = UserFactory()
        center = CenterFactory(
            time_zone_id=zone, is_after_hours_support_enabled=choice.random() < 0.3
        )
        self.room = MeetingRoomFactory(
            center=center,
            grid_minutes=choice.choice([None, None, 7, 20, 30, 50, 60, 240]),
            minimum_minutes=choice.choice([None, 15, 60]),
            maximum_minutes=choice.choice([None, 120, 2000]),
            booking_window_days=choice.choice([None, None, 3, 4]),
            turnaround_minutes=choice.choice([0, 10, 45]),
            is_blocked=choice.random() < 0.03,
        )
        self.middle = get_local_midnight(day, self.zone)
        self.now = self.middle + choice.randint(-4 * 24 * 60, -24 * 60) * MINUTE
        self.period = Span(self.pick(-48), self.pick(24) + 12 * HOUR)
        self.add_opening_hours(center)
        for room in (None, self.room):
            if choice.random() < 0.5:
                start = self.pick()
                ClosureFactory(
                    center=center, room=room, starts_at=start, ends_at=start + self.length()
                )
        self.add_reservations()

    def pick(self, around=0):
        return self.middle + self.random.randint(-36 * 60, 36 * 60) * MINUTE + around * HOUR

    def length(self):
        return self.random.choice([10, 15, 45, 60, 90, 240, 900, 1500]) * MINUTE

    def add_opening_hours(self, center):
        for weekday in range(7):
            opens, closes = self.random.sample(HOURS, 2)
            if self.random.random() < 0.7:  # otherwise it may close on the next day
                opens, closes = sorted([opens, closes])
            if self.random.random() < 0.4:
                opens = closes = dt.time(0)
            if self.random.random() < 0.9:
                OpeningHours.objects.create(
                    center=center, weekday=weekday, opens=opens, closes=closes
                )

    def add_reservations(self):
        taken = []
        for _ in range(8):
            start = self.pick()
            span = Span(start, start + self.length())
            turnaround = self.random.choice([0, 30, 60])
            around = span.expand(HOUR)
            if any(around.overlaps(other) for other in taken):
                continue
            taken.append(around)
            status = self.random.choice([Status.CONFIRMED, Status.NEW, Status.CANCELLED])
            owner = {"user": self.user} if self.random.random() < 0.4 else {}
            hold = self.now + self.random.choice([-HOUR, HOUR])
            ReservationFactory(
                **(owner | ({"hold_until": hold} if status == Status.NEW else {})),
                room=self.room,
                start=span.start,
                end=span.end,
                status=status,
                turnaround_minutes=turnaround,
            )

    def find_free_times(self):
        room = get_room(self.room.pk)
        calendars = availability.load_calendars([room], self.period, user=self.user, now=self.now)
        return list(calendars[room.pk].find_free_times(self.period, now=self.now))

    def probe(self):
        """A booking on the grid and within the period, or None."""
        rules = get_booking_rules(self.room)
        slot = rules.slot_minutes
        start = hours.round_up_to_slot(self.pick(self.random.choice([-24, 0, 24])), self.zone, slot)
        end = hours.round_up_to_slot(start + self.length(), self.zone, slot)
        minutes = (end - start) / MINUTE
        window_end = get_local_midnight(rules.get_last_day(self.now, self.zone) + DAY, self.zone)
        if (
            not rules.minimum_minutes <= minutes <= rules.maximum_minutes
            or start < self.period.start
            or end > self.period.end
            or start < window_end < end
        ):
            return None
        return Span(start, end)


def find_disagreements(seeds):
    """Return the probes about which free times and evaluator disagree, and how many agreed."""
    disagreements, agreed = [], {True: 0, False: 0}
    for seed in seeds:
        world = RandomWorld(seed)
        free = world.find_free_times()
        room = get_room(world.room.pk)
        for span in filter(None, (world.probe() for _ in range(PROBES))):
            is_free = any(each.contains(span) for each in free)
            found = availability.evaluate(room, span, now=world.now, for_user=world.user)
            if is_free == found.is_available:
                agreed[is_free] += 1
            else:
                disagreements.append((seed, span, found.reasons))
    return disagreements, agreed


def test_booking_is_available_exactly_if_it_lies_within_a_free_time():
    disagreements, agreed = find_disagreements(range(WORLDS))

    assert not disagreements, disagreements[:3]
    assert agreed[True] > WORLDS
    assert agreed[False] > WORLDS


def test_next_booking_is_available_and_none_before_it_is():
    proposed = 0
    for seed in range(WORLDS):
        world = RandomWorld(seed)
        room, rules = get_room(world.room.pk), get_booking_rules(world.room)
        earliest, length = world.now + free_times.TIME_TO_SUBMIT, rules.usual_duration
        last = None
        for _, last in free_times.find_next_bookings([room], user=world.user, now=world.now):
            proposed += 1
            assert last.duration == length
            assert availability.evaluate(
                room, last, now=world.now, for_user=world.user
            ).is_available
        days = (last.start - earliest if last else free_times.PROPOSAL_HORIZON) / DAY
        for _ in range(10):
            start = earliest + world.random.random() * days * DAY
            start = hours.round_up_to_slot(start, world.zone, rules.slot_minutes)
            ends = [start, start + length]
            is_before = start < last.start if last else ends[1] <= world.now + days * DAY
            if is_before and not any(at.astimezone(world.zone).fold for at in ends):
                other = availability.evaluate(room, Span(*ends), now=world.now, for_user=world.user)
                assert other.reasons, (seed, ends)
    assert proposed > WORLDS / 2


def test_disagreement_is_found_if_nothing_takes_time(monkeypatch):
    monkeypatch.setattr(availability, "find_gaps", lambda within, taken: [within])

    disagreements, _ = find_disagreements(range(20))

    assert disagreements


def test_free_times_are_maximal_ordered_and_on_the_grid():
    for seed in range(15):
        world = RandomWorld(seed)
        rules = get_booking_rules(world.room)
        free = world.find_free_times()
        for one, other in pairwise(free):
            assert one.end < other.start
        for span in free:
            assert world.period.contains(span)
            assert span.duration >= rules.minimum_minutes * MINUTE
            for end in (span.start, span.end):
                assert hours.is_on_slot(end, world.zone, rules.slot_minutes)
