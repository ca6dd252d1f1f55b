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
from centers.span import Span, midnight
from reservations import availability
from reservations.availability import Reason
from reservations.management.shell import day, room_numbered, whole_number

# These judge a booking by its length and its ends; one step of the grid is none.
OF_A_BOOKING = {"off-grid", "too-short", "too-long"}


@dataclass(frozen=True, slots=True)
class Stretch:
    span: Span
    reasons: tuple[Reason, ...]


class Command(BaseCommand):
    help = (
        "Show a room's day, step by step of its grid, on the center's clock: what is free, and why"
        " the rest is not, by the same evaluator that judges bookings."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("room", type=whole_number, metavar="ROOM", help="The room's id.")
        parser.add_argument(
            "--date", type=day, help="2027-03-01. Default: today, where the center is."
        )

    def handle(self, *, room: int, date: dt.date | None, **options: Any) -> None:
        now = timezone.now()
        found = room_numbered(room)
        zone = found.center.zone
        date = date or now.astimezone(zone).date()
        if not dt.date.min < date < dt.date.max:
            raise CommandError(f"--date: {date} is out of range.")
        named = format_date(date, "EEEE, MMMM d, y", locale=settings.LOCALE)
        self.stdout.write(f"{found.name} at {found.center.name} (room {found.pk})")
        self.stdout.write(f"{named}, {zone}")
        stretches = list(stretches_of(found, date, now))
        if not stretches:
            self.stdout.write("  The clock skips this day.")
        for stretch in stretches:
            when = clock(stretch.span, found)
            for line in told(stretch, found, now):
                self.stdout.write(f"  {when}  {line}")
                when = " " * len(when)


def stretches_of(room: MeetingRoom, date: dt.date, now: dt.datetime) -> Iterator[Stretch]:
    """The day in stretches of one answer each."""
    steps = ((step, reasons_at(room, step, now)) for step in steps_of(room, date))
    for reasons, run in groupby(steps, key=lambda item: item[1]):
        spans = [span for span, _ in run]
        yield Stretch(Span(spans[0].start, spans[-1].end), reasons)


def steps_of(room: MeetingRoom, date: dt.date) -> Iterator[Span]:
    """The local day by the room's grid, as long as the clock makes the day."""
    zone = room.center.zone
    minutes = room.grid_minutes or settings.BOOKING_GRID_MINUTES
    start, day_end = midnight(date, zone), midnight(date + dt.timedelta(1), zone)
    while start < day_end:
        end = min(start + dt.timedelta(minutes=minutes), day_end)
        yield Span(start, end)
        start = end


def reasons_at(room: MeetingRoom, span: Span, now: dt.datetime) -> tuple[Reason, ...]:
    answer = availability.of(room, span, now=now)
    return tuple(each for each in answer.reasons if each.code not in OF_A_BOOKING)


def told(stretch: Stretch, room: MeetingRoom, now: dt.datetime) -> list[str]:
    """A line a reason."""
    if stretch.reasons:
        return [f"{each.code}: {each.detail}" for each in stretch.reasons]
    answer = availability.of(room, stretch.span, now=now)
    short = [each.message for each in answer.reasons if each.code == "too-short"]
    return [f"free, but {short[0][:1].lower()}{short[0][1:]}"] if short else ["free"]


def clock(span: Span, room: MeetingRoom) -> str:
    """From and until; with their offsets on a day on which the clock changes."""
    zone = room.center.zone
    start, end = span.start.astimezone(zone), span.end.astimezone(zone)
    first = midnight(start.date(), zone).astimezone(zone)
    last = midnight(start.date() + dt.timedelta(1), zone).astimezone(zone)
    pattern = "%H:%M" if first.utcoffset() == last.utcoffset() else "%H:%M %z"
    until = end.strftime(pattern)
    # The end of the day is 24:00 of this day, not 00:00.
    if end.date() > start.date():
        until = until.replace("00:00", "24:00", 1)
    return f"{start.strftime(pattern)} - {until}"
