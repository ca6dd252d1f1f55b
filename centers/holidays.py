"""Holidays: the closed days of a year, as a list of public holidays and as lines that staff edit.

A holiday lasts for whole days in the local time of each center, whatever the clock changes, unless
its line names times: `2027-12-24 Christmas Eve, closed from 12:00`.
"""

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import holidays as public_holidays
from babel import Locale
from django.conf import settings

from centers.models import Center, Closure
from centers.span import Span, get_local_midnight
from roombook.db.transactions import in_transaction

MAX_HOLIDAYS = 400
MAX_DAYS_OF_HOLIDAY = 366
MAX_REASON_LENGTH = 255
MAX_REPORTED_PROBLEMS = 20
# The years that the list of public holidays knows.
ALLOWED_YEARS = range(2000, 2101)
TIME = r"(\d{1,2}:\d{2})"
LINE_PATTERN = re.compile(
    r"(?P<first>\d{4}-\d{2}-\d{2})(?:\s*(?:\.\.|to)\s*(?P<last>\d{4}-\d{2}-\d{2}))?[,;\s]*"
    rf"(?P<reason>.*?)(?:[,;]?\s*closed(?= from| until)(?: from (?P<starts>{TIME}))?"
    rf"(?: (?:until|to) (?P<ends>{TIME}))?)?"
)


class InvalidHolidays(ValueError):
    """The input cannot be read. `problems` says why, line by line."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True, slots=True, order=True)
class Holiday:
    """Whole days from the first to the last one, or from and until a local time on these."""

    first: dt.date
    last: dt.date
    reason: str
    starts: dt.time = dt.time()
    ends: dt.time | None = None

    def __str__(self) -> str:
        """The holiday as a line that `parse_lines` reads."""
        days = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{days} {self.label}".rstrip()

    @property
    def label(self) -> str:
        """The reason, and the times unless it lasts for whole days."""
        times = f" from {self.starts:%H:%M}" if self.starts != dt.time() else ""
        times += f" until {self.ends:%H:%M}" if self.ends is not None else ""
        return ", ".join(filter(None, [self.reason, times and f"closed{times}"]))

    def get_span(self, tz: dt.tzinfo) -> Span:
        start = dt.datetime.combine(self.first, self.starts, tz).astimezone(dt.UTC)
        if self.ends is None:
            return Span(start, get_local_midnight(self.last + dt.timedelta(days=1), tz))
        return Span(start, dt.datetime.combine(self.last, self.ends, tz).astimezone(dt.UTC))


# --- Public holidays ------------------------------------------------------------------------------


def get_countries() -> dict[str, str]:
    """Return the countries whose public holidays are known: the name by the code."""
    names = Locale.parse(settings.LOCALE).territories
    codes = public_holidays.list_supported_countries(include_aliases=False)
    return dict(sorted(((code, names.get(code, code)) for code in codes), key=lambda row: row[1]))


def get_regions(country: str) -> dict[str, str]:
    """Return the parts of a country that have holidays of their own: the name by the code."""
    known = public_holidays.country_holidays(country, years=[])
    names = {code: name for name, code in known.subdivisions_aliases.items()}
    regions = ((code, names.get(code, code)) for code in known.subdivisions)
    return dict(sorted(regions, key=lambda row: row[1]))


def find_region(country: str, state: str) -> str:
    """Return the code of a region by its name or code, "" if it has no holidays of its own."""
    regions = get_regions(country) if country in get_countries() else {}
    return next((code for code, name in regions.items() if state in {code, name}), "")


def list_public_holidays(country: str, region: str, year: int) -> list[Holiday]:
    """Return the days on which offices close, in the language of LOCALE if it is known.

    ``region`` is empty for the holidays of the whole country. Raises InvalidHolidays.
    """
    known = public_holidays.country_holidays(country, years=[])
    languages = known.supported_languages
    language = next(
        (each for each in (settings.LOCALE, settings.LOCALE[:2]) if each in languages), None
    )
    if language is None and "en_US" in languages:
        language = "en_US"
    days = public_holidays.country_holidays(
        country, subdiv=region or None, years=year, language=language or known.default_language
    )
    found = [Holiday(day, day, name[:MAX_REASON_LENGTH]) for day, name in days.items()]
    if not found:
        raise InvalidHolidays(f"No public holidays are known for {year}. Enter the days yourself.")
    return sort_holidays(found)


# --- Lines ----------------------------------------------------------------------------------------


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
    try:
        starts = _parse_time(match["starts"] or "0:00")
        ends = _parse_time(match["ends"]) if match["ends"] else None
    except ValueError:
        raise ValueError("There is no such time.") from None
    return _validate_holiday(Holiday(first, last, match["reason"].strip(), starts, ends))


def _parse_time(text: str) -> dt.time:
    return dt.datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 (a local time)


def _validate_holiday(holiday: Holiday) -> Holiday:
    if holiday.last < holiday.first:
        raise ValueError("The last day is before the first day.")
    if holiday.first == holiday.last and holiday.ends and holiday.ends <= holiday.starts:
        raise ValueError("The end must be after the start.")
    if (holiday.last - holiday.first).days >= MAX_DAYS_OF_HOLIDAY:
        raise ValueError("A holiday can last for one year at most.")
    if not (holiday.first.year in ALLOWED_YEARS and holiday.last.year in ALLOWED_YEARS):
        raise ValueError("The year must be between 2000 and 2100.")
    if len(holiday.reason) > MAX_REASON_LENGTH:
        raise ValueError(f"The reason can have {MAX_REASON_LENGTH} characters at most.")
    return holiday


def sort_holidays(holidays: Iterable[Holiday]) -> list[Holiday]:
    """The holidays by date, without duplicates."""
    ordered = sorted(set(holidays))
    if len(ordered) > MAX_HOLIDAYS:
        raise InvalidHolidays(f"These are more than {MAX_HOLIDAYS} days.")
    return ordered


# --- Closures ------------------------------------------------------------------------------------


def plan_closures(
    centers: Iterable[Center], holidays: Iterable[Holiday], *, now: dt.datetime
) -> dict[Holiday, list[Closure]]:
    """Return the new closures for each holiday; none where it is past, or the center closed then.

    They are not saved yet.
    """
    centers = list(centers)
    closed: dict[int, list[Span]] = {center.pk: [] for center in centers}
    existing = Closure.objects.of_whole_center().filter(center__in=centers, ends_at__gt=now)
    for pk, starts_at, ends_at in existing.values_list("center", "starts_at", "ends_at"):
        closed[pk].append(Span(starts_at, ends_at))
    plan: dict[Holiday, list[Closure]] = {holiday: [] for holiday in holidays}
    for holiday, closures in plan.items():
        for center in centers:
            span = holiday.get_span(center.zone)
            if span.end > now and not any(each.contains(span) for each in closed[center.pk]):
                closed[center.pk].append(span)
                times = {"starts_at": span.start, "ends_at": span.end}
                closures.append(Closure(center=center, reason=holiday.reason, **times))
    return plan


@in_transaction
def create_closures(
    centers: Iterable[int], holidays: Iterable[Holiday], *, now: dt.datetime
) -> list[Closure]:
    """Close the centers on the holidays, unless they are already closed. Safe to repeat."""
    # Locked, so that of two calls at the same time the second one sees what the first one created.
    rows = Center.objects.select_for_update(no_key=True).filter(pk__in=centers).order_by("pk")
    closures = list(chain.from_iterable(plan_closures(rows, holidays, now=now).values()))
    for closure in closures:
        # Saved one by one, so that each gets an entry in the audit log.
        closure.save()
    return closures
