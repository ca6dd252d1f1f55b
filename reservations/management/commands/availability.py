import datetime as dt
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from centers.models import MeetingRoom
from centers.rooms import get_booking_rules
from centers.span import Span, get_local_midnight
from reservations import availability
from reservations.availability import Reason
from reservations.management.command_line import get_room, parse_date, parse_id
from roombook import dates

# These apply to the duration and the ends of a booking, not to a single time slot.
DURATION_REASONS = {"off-grid", "too-short", "too-long"}


@dataclass(frozen=True, slots=True)
class DayInterval:
    """A part of a day with the same reasons throughout; available if there are no reasons."""

    span: Span
    reasons: tuple[Reason, ...]


class Command(BaseCommand):
    help = (
        "Show when a room is available on a day, in the center's local time, and why it is not at"
        " other times, by the same rules as for bookings."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("room", type=parse_id, metavar="ROOM", help="The room's id.")
        parser.add_argument(
            "--date", type=parse_date, help="2027-03-01. Default: today, at the center."
        )

    def handle(self, *, room: int, date: dt.date | None, **options: object) -> None:
        now = timezone.now()
        selected = get_room(room)
        zone = selected.center.zone
        date = date or now.astimezone(zone).date()
        if not dt.date.min < date < dt.date.max:
            raise CommandError(f"--date: {date} is out of range.")
        day = dates.format_full_day(date, settings.LOCALE)
        self.stdout.write(f"{selected.name} at {selected.center.name} (room {selected.pk})")
        self.stdout.write(f"{day}, {zone}")
        intervals = list(get_intervals(selected, date, now))
        if not intervals:
            self.stdout.write("  The clock skips this day.")
        for interval in intervals:
            when = format_interval(interval.span, selected)
            for line in render_interval(interval, selected, now):
                self.stdout.write(f"  {when}  {line}")
                when = " " * len(when)


def get_intervals(room: MeetingRoom, date: dt.date, now: dt.datetime) -> Iterator[DayInterval]:
    """Split the day into intervals with the same reasons throughout."""
    steps = ((step, get_reasons(room, step, now)) for step in get_grid_steps(room, date))
    for reasons, group in groupby(steps, key=lambda item: item[1]):
        spans = [span for span, _ in group]
        yield DayInterval(Span(spans[0].start, spans[-1].end), reasons)


def get_grid_steps(room: MeetingRoom, date: dt.date) -> Iterator[Span]:
    """Split the local day, which can have 23 or 25 hours, by the room's time slots."""
    zone = room.center.zone
    minutes = get_booking_rules(room).slot_minutes
    start, day_end = (
        get_local_midnight(date, zone),
        get_local_midnight(date + dt.timedelta(1), zone),
    )
    while start < day_end:
        end = min(start + dt.timedelta(minutes=minutes), day_end)
        yield Span(start, end)
        start = end


def get_reasons(room: MeetingRoom, span: Span, now: dt.datetime) -> tuple[Reason, ...]:
    result = availability.evaluate(room, span, now=now)
    return tuple(each for each in result.reasons if each.code not in DURATION_REASONS)


def render_interval(interval: DayInterval, room: MeetingRoom, now: dt.datetime) -> list[str]:
    """Render one line per reason."""
    if interval.reasons:
        return [f"{each.code}: {each.detail}" for each in interval.reasons]
    result = availability.evaluate(room, interval.span, now=now)
    too_short = [each.message for each in result.reasons if each.code == "too-short"]
    if not too_short:
        return ["available"]
    [message] = too_short
    return [f"available, but {message[:1].lower()}{message[1:]}"]


def format_interval(span: Span, room: MeetingRoom) -> str:
    """Format start and end, with their UTC offsets on a day on which the clock changes."""
    zone = room.center.zone
    start, end = span.start.astimezone(zone), span.end.astimezone(zone)
    first = get_local_midnight(start.date(), zone).astimezone(zone)
    last = get_local_midnight(start.date() + dt.timedelta(1), zone).astimezone(zone)
    pattern = "%H:%M" if first.utcoffset() == last.utcoffset() else "%H:%M %z"
    until = end.strftime(pattern)
    # The day ends at 24:00, not at 00:00 of the next one.
    if end.date() > start.date():
        until = until.replace("00:00", "24:00", 1)
    return f"{start.strftime(pattern)} - {until}"
