"""The working days of the demo: at every center, 60 days back and 60 ahead of the loading (B20).

What happens is planned without chance from the time of loading, and then done in the order of time.
"""

import datetime as dt
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from accounts.models import User
from centers.hours import get_open_spans, round_down_to_slot, round_up_to_slot
from centers.models import MeetingRoom, Service
from centers.span import Span, get_local_midnight
from reservations import availability
from reservations.booking import reminders
from reservations.demo import accounts, meetings
from reservations.demo.meetings import Meeting, Way
from reservations.models import Reservation
from reservations.models.booking_fields import BookingValues

MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
DAYS = 60
GRID_MINUTES = 15
# Nobody meets outside these local hours, even where a center is always open.
FIRST_HOUR, LAST_HOUR = 8, 21
# The share of the possible meetings that take place, by how far away a day is: today and tomorrow,
# in the weeks around them, and else. The center with all roles is busier than the others.
BUSY_SHARES, OTHER_SHARES = (0.6, 0.3, 0.12), (0.25, 0.03, 0.01)
NO_SHOW_SHARE, COFFEE_SHARE = 0.06, 0.3
WAYS: tuple[Way, ...] = ("card", "terminal", "terminal", "terminal", "cash", "account", "account")
# On other days than today and tomorrow, fewer meetings are longer, as each takes time to create.
MINUTES, MANY_MINUTES = (60, 60, 90, 120, 120, 180, 240), (120, 180, 240, 360, 480)
MINUTES_BETWEEN = (0, 15, 30, 60, 90)
# How long before a meeting it is booked, and how long ago those of the future were.
HOURS_BEFORE = (3, 20, 30, 50, 75, 100, 170, 260, 400)
# README and the guide book this room from this day on.
GUIDE_ROOM, GUIDE_FIRST_DAY = "Aspen", 29


class Event(NamedTuple):
    """What happens at a time, if its meeting was booked."""

    at: dt.datetime
    act: Callable[..., object]
    meeting: Meeting | None = None
    calls_gateway: bool = False


def create(*, now: dt.datetime, write_line: Callable[[str], object]) -> None:
    """Create the reservations. Calls the gateway: no transaction may be open."""
    events = Plan(now).plan()
    # Many changes share a transaction, which takes half the time.
    for calls_gateway, group in groupby(events, lambda event: event.calls_gateway):
        with nullcontext() if calls_gateway else transaction.atomic():
            for event in group:
                if event.meeting is None or event.meeting.pk is not None:
                    event.act(now=event.at)
    meetings.close_overdue(now=now)
    with transaction.atomic():
        for _ in reminders.send_meeting_reminders(now=now):
            pass
    rows = Reservation.objects.filter(user__email__in=accounts.CUSTOMER_EMAILS)
    write_line(f"{rows.count()} reservations, from {DAYS} days ago until {DAYS} days ahead")


@dataclass(slots=True)
class Plan:
    """Everything that happens at the demo centers until `now`."""

    now: dt.datetime
    events: list[Event] = field(default_factory=list)
    taken: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))
    rooms: list[MeetingRoom] = field(init=False)
    customers: list[User] = field(init=False)
    staff: dict[str, User] = field(init=False)
    coffee: dict[int, Service] = field(init=False)

    def __post_init__(self) -> None:
        rooms = MeetingRoom.objects.with_booking_details().filter(is_blocked=False)
        self.rooms = list(rooms.prefetch_related("center__opening_hours").order_by("pk"))
        users = User.objects.in_bulk(
            [*accounts.CUSTOMER_EMAILS, accounts.STAFF, accounts.MANAGER], field_name="email"
        )
        self.customers = [users[email] for email in accounts.CUSTOMER_EMAILS]
        self.staff = users
        coffee = Service.objects.filter(name="Coffee and tea")
        self.coffee = {service.center_id: service for service in coffee}

    def plan(self) -> list[Event]:
        """Plan the special cases first, and other meetings where rooms are still free."""
        self._plan_this_hour()
        self._plan_special_days()
        for _, rooms in groupby(self.rooms, key=lambda room: room.center_id):
            self._plan_some_days(list(rooms))
        for room in self.rooms:
            for days in range(-DAYS, DAYS + 1):
                self._fill_day(room, days)
        self.events += [
            Event(self.now - days * DAY, meetings.close_overdue) for days in range(1, DAYS + 1)
        ]
        return sorted(self.events, key=lambda event: event.at)

    # --- Special cases ---------------------------------------------------------------------------

    def _plan_this_hour(self) -> None:
        """Plan what goes on now, each at the first center that is open."""
        amara, bruno, chiara, devika, *_ = self.customers
        before = self.now - 2 * DAY
        # The meeting takes longer, and its customer has the room for another hour, on account.
        for room, span in self._find_room_now(-90, 60, without_turnaround=True):
            end = span.end - HOUR
            first = self._meet(amara, room, Span(span.start, end), before, way="card")
            rest = self._meet(amara, room, Span(end, span.end), end - 5 * MINUTE, way="account")
            note = "They need the room for another hour. It goes on their account."
            self._do(end - 4 * MINUTE, rest, partial(meetings.add_note, text=note))
            self._arrive(first)
            self._do(end, rest, meetings.check_customer_in)
        for room, span in self._find_room_now(-105, -30):
            missed = self._meet(bruno, room, span, before, way="card")
            self._do(span.start + 40 * MINUTE, missed, meetings.mark_no_show)
        for room, span in self._find_room_now(-60, 90):
            self._arrive(self._meet(chiara, room, span, before, way="terminal", has_coffee=True))
        # Nobody else is late.
        for room, span in self._find_room_now(0, 60):
            self._meet(devika, room, span, before, way="terminal", has_coffee=True)

    def _find_room_now(
        self, first: int, last: int, *, without_turnaround: bool = False
    ) -> Iterator[tuple[MeetingRoom, Span]]:
        """Yield the first room that is free from `first` to `last`, in minutes from a while ago."""
        for room in self.rooms:
            start = round_down_to_slot(self.now - 10 * MINUTE, room.center.zone, GRID_MINUTES)
            span = Span(start + first * MINUTE, start + last * MINUTE)
            is_suitable = room.is_live_inventory and room.capacity > 1
            if without_turnaround:
                is_suitable &= not room.turnaround_minutes
            if is_suitable and self._is_available(room, span, self.now - 2 * DAY):
                yield room, span
                return

    def _plan_special_days(self) -> None:
        """Plan special cases of other days, most of them at the center that has all roles."""
        elias, freya, grace, hugo, ines, jonas, *_ = self.customers[4:]
        # It expires in two hours. Another request is in bookings.json.
        asked_at = self.now - (settings.PENDING_HOURS - 2) * HOUR
        room, span = self._find_day(self._get_room("Presidio"), 5, 10, 3, created_at=asked_at)
        self._meet(elias, room, span, asked_at, way="card")
        created_at = self.now - 4 * DAY
        room, span = self._find_day(self._get_room("Summit"), 2, 9, 4, created_at=created_at)
        self._meet(freya, room, span, created_at, way="card", promo_code="WELCOME10")
        room, span = self._find_day(self._get_room("Juniper"), 3, 13, 2, created_at=created_at)
        extended = self._meet(grace, room, span, created_at, way="card")
        self._do(self.now - DAY, extended, meetings.extend, calls_gateway=True)
        room, span = self._find_day(self._get_room("Boardroom"), 8, 9, 3, created_at=created_at)
        refunded = self._meet(hugo, room, span, created_at, way="card")
        self._do(self.now - 2 * DAY, refunded, meetings.cancel, calls_gateway=True)
        created_at = self.now - 12 * DAY
        room, span = self._find_day(self._get_room("Boardroom"), -2, 9, 4, created_at=created_at)
        reduced = self._meet(ines, room, span, created_at, way="card")
        self._arrive(reduced)
        self._do(span.end + HOUR, reduced, meetings.reduce_price, calls_gateway=True)
        # A closure, and two bookings that were made before.
        created_at = self.now - 6 * DAY
        room, span = self._find_day(self._get_room("Office 12"), 4, 9, 8, created_at=created_at)
        morning = Span(span.start, span.start + 4 * HOUR)
        inside = self._meet(jonas, room, morning, created_at, way="card")
        self._meet(hugo, room, Span(morning.end, span.end), created_at, way="terminal")
        self._do(self.now - 3 * HOUR, inside, partial(meetings.close_room, reason="New windows"))
        midnight = get_local_midnight(
            span.start.astimezone(room.center.zone).date(), room.center.zone
        )
        self.taken[room.pk].append(Span(midnight, midnight + DAY))
        created_at = self.now - 5 * MINUTE
        room, span = self._find_day(self._get_room("Summit"), 5, 13, 3, created_at=created_at)
        unpaid = self._meet(self.customers[-1], room, span, created_at, way="link")
        self._do(created_at, unpaid, meetings.send_payment_link)

    def _get_room(self, name: str) -> MeetingRoom:
        return next(room for room in self.rooms if room.name == name)

    def _find_day(
        self, room: MeetingRoom, days: int, hour: int, hours: int, *, created_at: dt.datetime
    ) -> tuple[MeetingRoom, Span]:
        """Return the room with the first day, so many days ahead or later, when it is free then.

        With negative days, they are counted back.
        """
        today = self.now.astimezone(room.center.zone).date()
        for more in range(DAYS):
            day = today + dt.timedelta(days + more if days > 0 else days - more)
            start = dt.datetime.combine(day, dt.time(hour), room.center.zone)
            span = Span(start, start + hours * HOUR)
            if self._is_available(room, span, created_at):
                return room, span
        raise AssertionError(f"{room} is never available")

    def _is_available(self, room: MeetingRoom, span: Span, created_at: dt.datetime) -> bool:
        if not self._is_free(room, span):
            return False
        return availability.evaluate(room, span, now=created_at).is_available

    # --- Other meetings --------------------------------------------------------------------------

    def _plan_some_days(self, rooms: list[MeetingRoom]) -> None:
        """Plan a meeting every few weeks, so that each center has some whatever the weekday is."""
        for number, days in enumerate((-48, -30, -12, 12, 30, 48)):
            room = rooms[number % len(rooms)]
            chance = random.Random(f"{room.center.name}, {days}")
            created_at = self.now + min(days, 0) * DAY - 10 * DAY
            if room.name != GUIDE_ROOM or days < 0:
                self._fill_span(*self._find_day(room, days, 14, 3, created_at=created_at), chance)

    def _fill_day(self, room: MeetingRoom, days: int) -> None:
        """Plan meetings of a room on the day in so many days."""
        if room.name == GUIDE_ROOM and days >= GUIDE_FIRST_DAY:
            return
        center, zone = room.center, room.center.zone
        is_busy = center.name == accounts.ROLES_CENTER
        distance = 0 if days in {0, 1} else 1 if abs(days) <= 7 else 2
        share = (BUSY_SHARES if is_busy else OTHER_SHARES)[distance]
        lengths = MANY_MINUTES if distance else MINUTES
        day = self.now.astimezone(zone).date() + days * DAY
        first = dt.datetime.combine(day, dt.time(FIRST_HOUR), zone)
        last = dt.datetime.combine(day, dt.time(LAST_HOUR), zone)
        # Always the same, and different for each room and day.
        chance = random.Random(f"{center.name}, {room.name}, {days}")
        for opened in get_open_spans(day, center.opening_hours.all(), zone):
            start = round_up_to_slot(max(opened.start, first), zone, GRID_MINUTES)
            while True:
                start += chance.choice(MINUTES_BETWEEN) * MINUTE
                minutes = max(chance.choice(lengths), room.minimum_minutes or 0)
                span = Span(start, start + minutes * MINUTE)
                if span.end > min(opened.end, last):
                    break
                if chance.random() < share and self._is_free(room, span):
                    self._fill_span(room, span, chance)
                start = span.end + room.turnaround_minutes * MINUTE

    def _fill_span(self, room: MeetingRoom, span: Span, chance: random.Random) -> None:
        hours_before, hours_ago = chance.choices(HOURS_BEFORE, k=2)
        created_at = min(span.start - hours_before * HOUR, self.now - hours_ago * HOUR)
        meeting = self._meet(
            chance.choice(self.customers[:-1]),
            room,
            span,
            created_at,
            way=chance.choice(WAYS),
            has_coffee=chance.random() < COFFEE_SHARE,
            people=chance.randint(min(room.capacity, 2), min(room.capacity, 12)),
        )
        if not room.is_live_inventory:
            is_by_card = meeting.way == "card"
            self._do(created_at + HOUR, meeting, meetings.approve, calls_gateway=is_by_card)
        if span.end < self.now and chance.random() < NO_SHOW_SHARE:
            self._do(span.start + 40 * MINUTE, meeting, meetings.mark_no_show)
        else:
            self._arrive(meeting)
        if meeting.way == "account":
            self._do(span.end + 14 * DAY, meeting, meetings.receive_money)

    # --- Parts of the plan -----------------------------------------------------------------------

    def _meet(
        self,
        customer: User,
        room: MeetingRoom,
        span: Span,
        created_at: dt.datetime,
        *,
        way: Way,
        has_coffee: bool = False,
        people: int = 2,
        promo_code: str = "",
    ) -> Meeting:
        has_roles = room.center.name == accounts.ROLES_CENTER
        staff = self.staff[accounts.MANAGER if has_roles else accounts.STAFF]
        values = BookingValues(number_of_attendees=people)
        if has_coffee:
            coffee = self.coffee[room.center_id]
            values["services"] = [{"service_id": coffee.pk, "quantity": people}]
        meeting = Meeting(
            customer, room, span, created_at, way, staff, values=values, promo_code=promo_code
        )
        book = partial(meetings.book, meeting)
        self.events.append(Event(created_at, book, calls_gateway=meeting.way == "card"))
        self.taken[room.pk].append(span)
        return meeting

    def _do(
        self,
        at: dt.datetime,
        meeting: Meeting,
        act: Callable[..., object],
        *,
        calls_gateway: bool = False,
    ) -> None:
        if at <= self.now:
            self.events.append(Event(at, partial(act, meeting), meeting, calls_gateway))

    def _arrive(self, meeting: Meeting) -> None:
        self._do(meeting.span.start - 5 * MINUTE, meeting, meetings.check_customer_in)

    def _is_free(self, room: MeetingRoom, span: Span) -> bool:
        turnaround = room.turnaround_minutes * MINUTE
        return not any(
            span.start < other.end + turnaround and other.start < span.end + turnaround
            for other in self.taken[room.pk]
        )
