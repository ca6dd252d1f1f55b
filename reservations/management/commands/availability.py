import datetime as dt
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from babel.dates import format_date
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from centers.models import MeetingRoom
from centers.span import Span, get_local_midnight
from reservations import availability
from reservations.availability import Reason
from reservations.management.shell import get_room, parse_date, parse_id

# These judge a booking by its length and its ends; one step of the grid is none.
DURATION_REASONS = {"off-grid", "too-short", "too-long"}


@dataclass(frozen=True, slots=True)
class DayInterval:
    span: Span
    reasons: tuple[Reason, ...]


class Command(BaseCommand):
    help = (
        "Show a room's day, step by step of its grid, on the center's clock: what is free, and why"
        " the rest is not, by the same evaluator that judges bookings."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("room", type=parse_id, metavar="ROOM", help="The room's id.")
        parser.add_argument(
            "--date", type=parse_date, help="2027-03-01. Default: today, where the center is."
        )

    def handle(self, *, room: int, date: dt.date | None, **options: Any) -> None:
        now = timezone.now()
        found = get_room(room)
        zone = found.center.zone
        date = date or now.astimezone(zone).date()
        if not dt.date.min < date < dt.date.max:
            raise CommandError(f"--date: {date} is out of range.")
        named = format_date(date, "EEEE, MMMM d, y", locale=settings.LOCALE)
        self.stdout.write(f"{found.name} at {found.center.name} (room {found.pk})")
        self.stdout.write(f"{named}, {zone}")
        stretches = list(get_intervals(found, date, now))
        if not stretches:
            self.stdout.write("  The clock skips this day.")
        for stretch in stretches:
            when = format_interval(stretch.span, found)
            for line in render_interval(stretch, found, now):
                self.stdout.write(f"  {when}  {line}")
                when = " " * len(when)


def get_intervals(room: MeetingRoom, date: dt.date, now: dt.datetime) -> Iterator[DayInterval]:
    """The day in stretches of one answer each."""
    steps = ((step, get_reasons(room, step, now)) for step in get_grid_steps(room, date))
    for reasons, run in groupby(steps, key=lambda item: item[1]):
        spans = [span for span, _ in run]
        yield DayInterval(Span(spans[0].start, spans[-1].end), reasons)


def get_grid_steps(room: MeetingRoom, date: dt.date) -> Iterator[Span]:
    """The local day by the room's grid, as long as the clock makes the day."""
    zone = room.center.zone
    minutes = room.grid_minutes or settings.BOOKING_GRID_MINUTES
    start, day_end = (
        get_local_midnight(date, zone),
        get_local_midnight(date + dt.timedelta(1), zone),
    )
    while start < day_end:
        end = min(start + dt.timedelta(minutes=minutes), day_end)
        yield Span(start, end)
        start = end


def get_reasons(room: MeetingRoom, span: Span, now: dt.datetime) -> tuple[Reason, ...]:
    answer = availability.evaluate(room, span, now=now)
    return tuple(each for each in answer.reasons if each.code not in DURATION_REASONS)


def render_interval(stretch: DayInterval, room: MeetingRoom, now: dt.datetime) -> list[str]:
    """A line a reason."""
    if stretch.reasons:
        return [f"{each.code}: {each.detail}" for each in stretch.reasons]
    answer = availability.evaluate(room, stretch.span, now=now)
    short = [each.message for each in answer.reasons if each.code == "too-short"]
    return [f"free, but {short[0][:1].lower()}{short[0][1:]}"] if short else ["free"]


def format_interval(span: Span, room: MeetingRoom) -> str:
    """From and until; with their offsets on a day on which the clock changes."""
    zone = room.center.zone
    start, end = span.start.astimezone(zone), span.end.astimezone(zone)
    first = get_local_midnight(start.date(), zone).astimezone(zone)
    last = get_local_midnight(start.date() + dt.timedelta(1), zone).astimezone(zone)
    pattern = "%H:%M" if first.utcoffset() == last.utcoffset() else "%H:%M %z"
    until = end.strftime(pattern)
    # The end of the day is 24:00 of this day, not 00:00.
    if end.date() > start.date():
        until = until.replace("00:00", "24:00", 1)
    return f"{start.strftime(pattern)} - {until}"
