"""One calendar of a room, in random worlds: evaluator, free times and timeline agree (B11.5)."""

import datetime as dt
import os
import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import pytest

from accounts.models import User
from centers import hours
from centers.models import OpeningHours
from centers.rooms import get_booking_rules, get_room
from centers.span import Span, get_local_midnight
from reservations import availability, free_times
from reservations.availability import HeldTime, RoomCalendar, load_calendars
from reservations.desk.timeline import geometry, timeline
from reservations.desk.timeline.geometry import build_axis
from reservations.desk.timeline.timeline import Timeline
from reservations.models.status import Status
from tests.factories_centers import CenterFactory, ClosureFactory, MeetingRoomFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import DAY, HOUR, MINUTE, ReservationFactory

pytestmark = pytest.mark.django_db

WORLDS, PROBES = (1000, 80) if os.environ.get("FAULTS") == "long" else (30, 40)
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
            minimum_minutes=choice.choice([None, 0, 15, 60]),
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
            status = self.random.choice(
                [Status.CONFIRMED, Status.NEW, Status.CANCELLED, Status.NO_SHOW]
            )
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


class BruteForce:
    """What can be booked in a world, by its rows alone, at each step of the grid."""

    def __init__(self, world):
        self.world, self.room = world, get_room(world.room.pk)
        self.rules = get_booking_rules(self.room)
        self.shortest = max(self.rules.minimum_minutes, 1) * MINUTE
        self.opening_hours = list(self.room.center.opening_hours.all())
        self.closures = [each.span for each in self.room.center.closures.all()]
        self.reservations = list(self.room.reservations.all())
        at, self.grid = world.middle - 5 * DAY, []
        while at < world.middle + 4 * DAY:
            at = hours.round_up_to_slot(at + MINUTE, world.zone, self.rules.slot_minutes)
            self.grid.append(at)
        last_day = self.rules.get_last_day(world.now, world.zone)
        self.window_end = get_local_midnight(last_day + DAY, world.zone)

    def is_held(self, span, user):
        for each in self.reservations:
            is_draft = each.status == Status.NEW
            if is_draft and (each.hold_until <= self.world.now or each.user == user):
                continue
            gap = max(each.turnaround_minutes, self.room.turnaround_minutes) * MINUTE
            if (is_draft or each.status == Status.CONFIRMED) and (
                each.start - gap < span.end and span.start < each.end + gap
            ):
                return True
        return False

    def is_in_hours(self, span):
        is_always = self.room.center.is_after_hours_support_enabled
        return is_always or hours.is_open(span, self.opening_hours, self.world.zone)

    def is_outside_hours(self, span):
        """Whether the hours have to be overridden for each minute."""
        minutes = range(int(span.duration / MINUTE))
        starts = (span.start + minute * MINUTE for minute in minutes)
        return not any(self.is_in_hours(Span(start, start + MINUTE)) for start in starts)

    def is_available(self, span, user, *, is_closed=False, by_staff=False):
        earliest = self.world.now
        if by_staff:  # from the running slot, and the quarter of an hour before it (B26.10)
            earliest = max(at for at in self.grid if at <= earliest) - 15 * MINUTE
        return (
            not self.room.is_blocked
            and earliest <= span.start < self.window_end
            and self.shortest <= span.duration <= self.rules.maximum_minutes * MINUTE
            and not any(closure.overlaps(span) for closure in self.closures)
            and not self.is_held(span, user)
            and (self.is_outside_hours(span) if is_closed else self.is_in_hours(span))
        )

    def list_shortest_bookings(self, within):
        """The shortest bookings from each step of the grid, and up to each, in order."""
        grid, pairs = self.grid, set()
        for at in grid:
            after = bisect_left(grid, at + self.shortest)
            before = bisect_right(grid, at - self.shortest) - 1
            pairs |= {(at, end) for end in grid[after : after + 1]}
            pairs |= {(start, at) for start in grid[before : before + 1] if before >= 0}
        spans = (Span(start, end) for start, end in sorted(pairs))
        # Free times end with the booking window, which is about the start (B11.5).
        return [
            each
            for each in spans
            if within.contains(each) and not each.start < self.window_end < each.end
        ]

    def list_steps(self, spans):
        return {at for at in self.grid if any(span.start <= at < span.end for span in spans)}


def find_differences(seeds):
    """What evaluator, free times and timeline say that brute force does not, and who found what."""
    differences, found = [], Counter()
    for seed in seeds:
        world = RandomWorld(seed)
        brute, room, now = BruteForce(world), get_room(world.room.pk), world.now
        calendar = load_calendars([room], world.period, user=world.user, now=now)[room.pk]
        free = list(calendar.find_free_times(world.period, now=now))

        shortest = brute.list_shortest_bookings(world.period)
        available = [each for each in shortest if brute.is_available(each, world.user)]
        steps = brute.list_steps(available) ^ brute.list_steps(free)
        # With slots that are longer than its longest booking, a room has free times in vain.
        is_bookable = brute.rules.maximum_minutes >= 2 * brute.rules.slot_minutes
        differences += [(seed, "free times", at) for at in steps if is_bookable]
        for span in shortest:
            if calendar.is_available(span, now=now) is not (span in available):
                differences.append((seed, "calendar", span))
        for span in filter(None, (world.probe() for _ in range(PROBES))):
            is_available = brute.is_available(span, world.user)
            answer = availability.evaluate(room, span, now=now, for_user=world.user)
            is_free = any(each.contains(span) for each in free)
            found[is_available] += 1
            if not answer.is_available == is_free == is_available:
                differences.append((seed, "evaluate", span, answer.reasons, is_free))

        for number in (-1, 0, 1):
            day = world.middle.astimezone(world.zone).date() + number * DAY
            if is_bookable and (axis := build_axis(day, world.zone)):
                slots = list_free_slots(axis, room, now)
                found["link"] += len(slots)
                for is_closed in (False, True):
                    differences += [
                        (seed, *each) for each in compare_links(brute, axis, slots, is_closed)
                    ]
    return differences, found


def list_free_slots(axis, room, now):
    staff = User(is_superuser=True)
    [row] = Timeline(room.center, [room], [axis], user=staff, now=now, whole_day=True).rows
    return [each for each in row["tracks"][0]["items"] if "status" not in each]


def compare_links(brute, axis, slots, is_closed):
    """Yield the links that are no booking, and the hours that lack one or have one too many."""
    zone, full_hours = brute.world.zone, [tick.at for tick in axis.ticks]
    linked = set()
    for slot in slots:
        query = dict(parse_qsl(urlsplit(slot["href"]).query))
        ends = (dt.datetime.fromisoformat(query[name]) for name in ("start", "end"))
        proposed = Span(*(hours.localize(each, zone) for each in ends))
        if slot["is_closed"] is is_closed:
            linked.add(bisect_right(full_hours, proposed.start))
            if not brute.is_available(proposed, None, is_closed=is_closed, by_staff=True):
                yield "link", proposed
    # What begins or ends in an hour that the clock repeats has no link.
    if axis.span.duration == DAY:
        expected = {
            bisect_right(full_hours, each.start)
            for each in brute.list_shortest_bookings(axis.span)
            if brute.is_available(each, None, is_closed=is_closed, by_staff=True)
        }
        yield from (("hour", axis.day, hour) for hour in linked ^ expected)


def test_evaluator_free_times_and_timeline_find_what_brute_force_finds():
    differences, found = find_differences(range(WORLDS))

    assert not differences, differences[:3]
    assert found[True] > WORLDS
    assert found[False] > WORLDS
    assert found["link"] > 5 * WORLDS


def ignore_turnaround(span, pk, status, start, end, minutes):
    return HeldTime(Span(start, end), pk, status, start, end, minutes)


def load_without_reservations(*args, **options):
    calendars = load_calendars(*args, **options)
    return {pk: replace(calendar, held=()) for pk, calendar in calendars.items()}


@pytest.mark.parametrize(
    ("owner", "name", "broken", "finder"),
    [
        (availability, "HeldTime", ignore_turnaround, "calendar"),
        (availability, "_load_closures", lambda *args: defaultdict(list), "calendar"),
        (availability, "_load_closures", lambda *args: defaultdict(list), "evaluate"),
        (availability, "find_gaps", lambda within, taken: [within], "free times"),
        (RoomCalendar, "is_outside_opening_hours", lambda self, span: False, "calendar"),
        (timeline, "load_calendars", load_without_reservations, "link"),
        (geometry, "round_up_to_slot", lambda at, zone, minutes: at + MINUTE, "hour"),
        (geometry, "round_down_to_slot", lambda at, zone, minutes: at + 30 * MINUTE, "link"),
    ],
)
def test_planted_defect_is_found(monkeypatch, owner, name, broken, finder):
    monkeypatch.setattr(owner, name, broken)

    # One world after another, until one finds it.
    worlds = (find_differences([seed])[0] for seed in range(12))
    assert any(finder == each[1] for differences in worlds for each in differences)


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
