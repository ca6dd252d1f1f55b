"""Holidays: reading the closed days of a year from text or a calendar, and creating closures.

A holiday lasts for whole days in the local time of each center, whatever the clock changes.
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
MAX_REPORTED_PROBLEMS = 20
ALLOWED_YEARS = range(2000, 2201)
LINE_PATTERN = re.compile(
    r"(?P<first>\d{4}-\d{2}-\d{2})(?:\s*(?:\.\.|to)\s*(?P<last>\d{4}-\d{2}-\d{2}))?[,;\s]*(?P<reason>.*)"
)


class InvalidHolidays(ValueError):
    """The input cannot be read. `problems` says why, line by line."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True, slots=True, order=True)
class Holiday:
    """Whole days from the first to the last one. Most holidays have one day."""

    first: dt.date
    last: dt.date
    reason: str

    def __str__(self) -> str:
        """The holiday as a line that `parse_lines` reads."""
        days = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{days} {self.reason}".rstrip()

    def get_span(self, tz: dt.tzinfo) -> Span:
        day_after = self.last + dt.timedelta(days=1)
        return Span(get_local_midnight(self.first, tz), get_local_midnight(day_after, tz))


class HolidayState(StrEnum):
    """Whether a closure will be created for a holiday at a center."""

    NEW = "new"
    CLOSED = "already closed"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class HolidayPlan:
    """What creating closures for some holidays would do at one center."""

    center: Center
    states: tuple[tuple[Holiday, HolidayState], ...]

    def get_new(self) -> list[Holiday]:
        return [holiday for holiday, state in self.states if state is HolidayState.NEW]

    def build_closures(self) -> list[Closure]:
        """The new closures, which are not saved yet."""
        spans = [(holiday, holiday.get_span(self.center.zone)) for holiday in self.get_new()]
        return [
            Closure(
                center=self.center, starts_at=span.start, ends_at=span.end, reason=holiday.reason
            )
            for holiday, span in spans
        ]


# --- Reading -------------------------------------------------------------------------------------


def parse_lines(text: str) -> list[Holiday]:
    """Read one holiday per line: `2027-12-24 to 2027-12-26 Christmas`."""
    holidays, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            holidays.append(_parse_line(line.strip()))
        except ValueError as error:
            problems.append(f"Line {number}: {error}")
    if problems:
        raise InvalidHolidays(*problems[:MAX_REPORTED_PROBLEMS])
    return sort_holidays(holidays)


def _parse_line(line: str) -> Holiday:
    match = LINE_PATTERN.fullmatch(line)
    if match is None:
        raise ValueError("Enter a day such as 2027-12-25, then the reason.")
    try:
        first = dt.date.fromisoformat(match["first"])
        last = dt.date.fromisoformat(match["last"] or match["first"])
    except ValueError:
        raise ValueError("There is no such day.") from None
    return _validate_holiday(Holiday(first, last, match["reason"].strip()))


def _validate_holiday(holiday: Holiday) -> Holiday:
    if holiday.last < holiday.first:
        raise ValueError("The last day is before the first day.")
    if (holiday.last - holiday.first).days >= MAX_DAYS_OF_HOLIDAY:
        raise ValueError("A holiday can last for one year at most.")
    if not (holiday.first.year in ALLOWED_YEARS and holiday.last.year in ALLOWED_YEARS):
        raise ValueError("The year must be between 2000 and 2200.")
    if len(holiday.reason) > MAX_REASON_LENGTH:
        raise ValueError(f"The reason can have {MAX_REASON_LENGTH} characters at most.")
    if "\0" in holiday.reason:
        raise ValueError("The reason contains a character that cannot be stored.")
    return holiday


def parse_calendar(content: bytes, year: int) -> list[Holiday]:
    """Read the events of a year from an iCalendar file, including events that recur every year."""
    if len(content) > MAX_CALENDAR_BYTES:
        raise InvalidHolidays("The calendar is larger than 1 MB.")
    try:
        calendar = Calendar.from_ical(content.decode("utf-8-sig"))
        if calendar.name != "VCALENDAR":
            raise ValueError
        events = calendar.walk("VEVENT")
        holidays = [holiday for event in events for holiday in _parse_event(event, year)]
    except Exception as error:  # icalendar raises errors of many types for a bad file
        raise InvalidHolidays("This file is not a valid calendar (.ics).") from error
    if not holidays:
        raise InvalidHolidays(f"The calendar has no events in {year}.")
    return sort_holidays(holidays)


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
        last = end - dt.timedelta(days=1)  # the end of an all-day event is exclusive
    last = max(first, last)
    rule = event.get("RRULE")
    is_simple = rule is not None and set(rule) <= {"FREQ", "INTERVAL", "WKST"}
    if rule and is_simple and rule.get("FREQ") == ["YEARLY"] and first.year <= year:
        interval = (rule.get("INTERVAL") or [1])[0]
        if (year - first.year) % interval == 0:
            moved = replace_year(first, year)
            if moved is None:
                return
            first, last = moved, moved + (last - first)
    if year in {first.year, last.year}:
        reason = " ".join(str(event.get("SUMMARY", "")).split())[:MAX_REASON_LENGTH]
        yield _validate_holiday(Holiday(first, last, reason.replace("\0", "")))


def load_holidays_of_year(center: Center, year: int) -> list[Holiday]:
    """The whole days of a year on which the center was closed."""
    tz = center.zone
    start = get_local_midnight(dt.date(year, 1, 1), tz)
    end = get_local_midnight(dt.date(year + 1, 1, 1), tz)
    closures = center.closures.of_whole_center().filter(starts_at__gte=start, starts_at__lt=end)
    holidays = []
    for closure in closures.order_by("starts_at")[:MAX_HOLIDAYS]:
        first = closure.starts_at.astimezone(tz).date()
        last = (closure.ends_at.astimezone(tz) - dt.timedelta(microseconds=1)).date()
        holiday = Holiday(first, last, closure.reason)
        if holiday.get_span(tz) == closure.span:
            holidays.append(holiday)
    return sort_holidays(holidays)


def move_to_year(holidays: Iterable[Holiday], year: int) -> list[Holiday]:
    """The same days in another year. A 29 February that it does not have is left out."""
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
    """The holidays by date, without duplicates."""
    ordered = sorted(set(holidays))
    if len(ordered) > MAX_HOLIDAYS:
        raise InvalidHolidays(f"These are more than {MAX_HOLIDAYS} days.")
    return ordered


# --- Closures ------------------------------------------------------------------------------------


def plan_holidays(
    centers: Iterable[Center], holidays: Iterable[Holiday], *, now: dt.datetime
) -> list[HolidayPlan]:
    """What would be created for each holiday at each center. Sends two queries."""
    centers, holidays = list(centers), list(holidays)
    if not holidays:
        return [HolidayPlan(center, ()) for center in centers]
    day = dt.timedelta(days=1)
    # Midnight differs between centers, but by less than a day from UTC.
    start = dt.datetime.combine(holidays[0].first, dt.time(), dt.UTC) - day
    end = dt.datetime.combine(max(each.last for each in holidays), dt.time(), dt.UTC) + 2 * day
    closures = Closure.objects.of_whole_center().filter(center__in=centers).overlapping(start, end)
    closed: dict[int, list[Span]] = {center.pk: [] for center in centers}
    for pk, starts_at, ends_at in closures.values_list("center", "starts_at", "ends_at"):
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
        span = holiday.get_span(center.zone)
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
    """Close the centers on the holidays, unless they are already closed. Safe to repeat."""
    # Locked, so that of two calls at the same time the second one sees what the first one created.
    rows = Center.objects.select_for_update(no_key=True).filter(pk__in=centers).order_by("pk")
    closures = []
    for plan in plan_holidays(rows, holidays, now=now):
        for closure in plan.build_closures():
            # Saved one by one, so that each gets an entry in the audit log.
            closure.save()
            closures.append(closure)
    return closures
