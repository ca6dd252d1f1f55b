"""The days of a year on which centers are closed: read from lines or a calendar, and written once.

A day is a whole day on the clock of each center, however long the clock makes it.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from icalendar import Calendar

from centers.models import Center, Closure
from centers.span import Span, get_local_midnight
from roombook.db.transactions import in_transaction

MAX_HOLIDAYS = 400
MAX_CALENDAR_BYTES = 1024 * 1024
MAX_DAYS_OF_HOLIDAY = 366
MAX_REASON_LENGTH = 255
LINE_PATTERN = re.compile(
    r"(?P<first>\d{4}-\d{2}-\d{2})(?:\s*(?:\.\.|to)\s*(?P<last>\d{4}-\d{2}-\d{2}))?[,;\s]*(?P<reason>.*)"
)


class InvalidHolidays(ValueError):
    """The list has something that is no holiday: `problems` say what, line by line."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True, slots=True, order=True)
class Holiday:
    """Whole days from the first to the last one, which are the same most of the time."""

    first: dt.date
    last: dt.date
    reason: str

    def __str__(self) -> str:
        """As a line that can be read again."""
        days = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{days} {self.reason}".rstrip()

    def span(self, zone: dt.tzinfo) -> Span:
        return Span(
            get_local_midnight(self.first, zone),
            get_local_midnight(self.last + dt.timedelta(days=1), zone),
        )


class HolidayState(StrEnum):
    """What becomes of a holiday at a center."""

    NEW = "new"
    CLOSED = "closed already"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class HolidayPlan:
    """What a list of holidays would do at one center."""

    center: Center
    states: tuple[tuple[Holiday, HolidayState], ...]

    def of(self, state: HolidayState) -> list[Holiday]:
        return [holiday for holiday, each in self.states if each is state]


# Reading


def parse_lines(text: str) -> list[Holiday]:
    """`2027-12-24 to 2027-12-26 Christmas`, one a line."""
    found, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(_parse_line(line.strip()))
        except ValueError as error:
            problems.append(f"Line {number}: {error}")
    if problems:
        raise InvalidHolidays(*problems[:20])
    return sort_holidays(found)


def _parse_line(line: str) -> Holiday:
    match = LINE_PATTERN.fullmatch(line)
    if match is None:
        raise ValueError("A line is a day as 2027-12-25, and a reason.")
    try:
        first = dt.date.fromisoformat(match["first"])
        last = dt.date.fromisoformat(match["last"] or match["first"])
    except ValueError:
        raise ValueError("There is no such day.") from None
    return _validate_holiday(Holiday(first, last, match["reason"].strip()))


def _validate_holiday(holiday: Holiday) -> Holiday:
    if holiday.last < holiday.first:
        raise ValueError("It ends before it begins.")
    if (holiday.last - holiday.first).days >= MAX_DAYS_OF_HOLIDAY:
        raise ValueError("A holiday is a year at most.")
    if not 2000 <= holiday.first.year <= holiday.last.year <= 2200:
        raise ValueError("The year is between 2000 and 2200.")
    if len(holiday.reason) > MAX_REASON_LENGTH:
        raise ValueError(f"A reason has {MAX_REASON_LENGTH} letters at most.")
    if "\0" in holiday.reason:
        raise ValueError("The reason has a letter that cannot be kept.")
    return holiday


def parse_calendar(content: bytes, year: int) -> list[Holiday]:
    """The events of an iCalendar file that fall into a year; those that come each year, too."""
    if len(content) > MAX_CALENDAR_BYTES:
        raise InvalidHolidays("The calendar is larger than 1 MB.")
    try:
        calendar = Calendar.from_ical(content.decode("utf-8-sig"))
        if calendar.name != "VCALENDAR":
            raise ValueError
        events = calendar.walk("VEVENT")
        found = [each for event in events for each in _parse_event(event, year)]
    except Exception as error:  # whatever icalendar stumbles over, it is the file's fault
        raise InvalidHolidays("This is not a calendar that we can read (.ics).") from error
    if not found:
        raise InvalidHolidays(f"The calendar has no event in {year}.")
    return sort_holidays(found)


def _parse_event(event: dict, year: int) -> Iterator[Holiday]:
    start = event["DTSTART"].dt
    end = event["DTEND"].dt if "DTEND" in event else None
    if end is None and "DURATION" in event:
        end = start + event["DURATION"].dt
    first = start.date() if isinstance(start, dt.datetime) else start
    if end is None:
        last = first
    elif isinstance(end, dt.datetime):
        last = (end - dt.timedelta(microseconds=1)).date()
    else:
        last = end - dt.timedelta(days=1)  # a calendar's last day is the one after
    last = max(first, last)
    rule = event.get("RRULE")
    plainly = rule is not None and set(rule) <= {"FREQ", "INTERVAL", "WKST"}
    if rule and plainly and rule.get("FREQ") == ["YEARLY"] and first.year <= year:
        interval = (rule.get("INTERVAL") or [1])[0]
        if (year - first.year) % interval == 0:
            moved = replace_year(first, year)
            if moved is None:
                return
            first, last = moved, moved + (last - first)
    if first.year == year or last.year == year:
        reason = " ".join(str(event.get("SUMMARY", "")).split())[:MAX_REASON_LENGTH].replace(
            "\0", ""
        )
        yield _validate_holiday(Holiday(first, last, reason))


def load_holidays_of_year(center: Center, year: int) -> list[Holiday]:
    """The whole days on which the center was closed in a year."""
    zone = center.zone
    begin, end = (
        get_local_midnight(dt.date(year, 1, 1), zone),
        get_local_midnight(dt.date(year + 1, 1, 1), zone),
    )
    rows = Closure.objects.filter(
        center=center, room__isnull=True, starts_at__gte=begin, starts_at__lt=end
    ).order_by("starts_at")[:MAX_HOLIDAYS]
    found = []
    for row in rows:
        first = row.starts_at.astimezone(zone).date()
        last = (row.ends_at.astimezone(zone) - dt.timedelta(microseconds=1)).date()
        holiday = Holiday(first, last, row.reason)
        if holiday.span(zone) == row.span:
            found.append(holiday)
    return sort_holidays(found)


def move_to_year(holidays: Iterable[Holiday], year: int) -> list[Holiday]:
    """The same days of another year; a 29 February that it does not have is left out."""
    moved = []
    for holiday in holidays:
        first = replace_year(holiday.first, year)
        if first is not None:
            length = holiday.last - holiday.first
            moved.append(Holiday(first, first + length, holiday.reason))
    return sort_holidays(moved)


def replace_year(day: dt.date, year: int) -> dt.date | None:
    try:
        return day.replace(year=year)
    except ValueError:
        return None


def sort_holidays(holidays: Iterable[Holiday]) -> list[Holiday]:
    """By day, each once."""
    ordered = sorted(set(holidays))
    if len(ordered) > MAX_HOLIDAYS:
        raise InvalidHolidays(f"These are more than {MAX_HOLIDAYS} days.")
    return ordered


# Writing


def plan_holidays(
    centers: Iterable[Center], holidays: Iterable[Holiday], *, now: dt.datetime
) -> list[HolidayPlan]:
    """What would become of each holiday at each center, in two queries."""
    centers, holidays = list(centers), list(holidays)
    if not holidays:
        return [HolidayPlan(center, ()) for center in centers]
    closed: dict[int, list[Span]] = {center.pk: [] for center in centers}
    day = dt.timedelta(days=1)
    # A day begins at another moment at each center, but nowhere more than a day away from UTC.
    begin = dt.datetime.combine(holidays[0].first, dt.time(), dt.UTC) - day
    end = dt.datetime.combine(max(each.last for each in holidays), dt.time(), dt.UTC) + 2 * day
    rows = Closure.objects.filter(
        center__in=centers, room__isnull=True, starts_at__lt=end, ends_at__gt=begin
    )
    for pk, starts_at, ends_at in rows.values_list("center", "starts_at", "ends_at"):
        closed[pk].append(Span(starts_at, ends_at))
    return [
        HolidayPlan(center, tuple(_plan_states(center, holidays, closed[center.pk], now)))
        for center in centers
    ]


def _plan_states(
    center: Center, holidays: list[Holiday], closed: list[Span], now: dt.datetime
) -> Iterator[tuple[Holiday, HolidayState]]:
    closed = list(closed)
    for holiday in holidays:
        span = holiday.span(center.zone)
        if any(each.contains(span) for each in closed):
            yield holiday, HolidayState.CLOSED
        elif span.end <= now:
            yield holiday, HolidayState.PAST
        else:
            yield holiday, HolidayState.NEW
            closed.append(span)


@in_transaction
def create_closures(
    centers: Iterable[int], holidays: Iterable[Holiday], *, now: dt.datetime
) -> list[Closure]:
    """Close the centers on these days, where they are not closed already; twice adds nothing."""
    # Locked, so that the second of two at once sees what the first one wrote.
    rows = Center.objects.select_for_update(no_key=True).filter(pk__in=centers).order_by("pk")
    closures = []
    for plan in plan_holidays(rows, holidays, now=now):
        for holiday in plan.of(HolidayState.NEW):
            span = holiday.span(plan.center.zone)
            closure = Closure(
                center=plan.center, starts_at=span.start, ends_at=span.end, reason=holiday.reason
            )
            # One by one, so that each one's history tells.
            closure.save()
            closures.append(closure)
    return closures
