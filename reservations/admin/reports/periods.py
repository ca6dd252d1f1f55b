"""Days as centers count them: a period of local days, and the same as the database can ask.

A day begins and ends by the clock of each center. What that means in UTC is worked out here, zone
by zone, and handed to the database as moments: both databases answer alike, also on the days when
a clock changes, and neither has to know what a time zone is.
"""

import calendar
import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    Case,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    IntegerField,
    OuterRef,
    Q,
    Value,
    When,
)

from centers.models import MeetingRoom
from centers.span import Span, get_local_midnight
from roombook import places

DAY = dt.timedelta(days=1)
# No clock of the world is further from UTC than this.
MAX_UTC_OFFSET = dt.timedelta(hours=26)


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """Local days, the first and the last included."""

    first: dt.date
    last: dt.date

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("A period begins before it ends.")

    @classmethod
    def month_of(cls, day: dt.date) -> "ReportPeriod":
        return cls(day.replace(day=1), day.replace(day=count_days_in_month(day)))

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    def days(self) -> Iterator[dt.date]:
        return (self.first + number * DAY for number in range(self.length))

    def months(self) -> tuple[dt.date, ...]:
        """The first day of each calendar month that the period touches."""
        return tuple(
            dt.date(number // 12, number % 12 + 1, 1)
            for number in range(_get_month_number(self.first), _get_month_number(self.last) + 1)
        )

    def span(self, time_zone_id: str) -> Span:
        """The period by the clock of a place."""
        zone = places.get_time_zone(time_zone_id)
        return Span(get_local_midnight(self.first, zone), get_local_midnight(self.last + DAY, zone))

    def anywhere(self) -> Span:
        """What holds the period whatever the clock."""
        first = dt.datetime.combine(self.first, dt.time(), tzinfo=dt.UTC)
        last = dt.datetime.combine(self.last, dt.time(), tzinfo=dt.UTC)
        return Span(first - MAX_UTC_OFFSET, last + DAY + MAX_UTC_OFFSET)


def _get_month_number(day: dt.date) -> int:
    return day.year * 12 + day.month - 1


def count_days_in_month(day: dt.date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def filter_by_period(period: ReportPeriod, zones: Iterable[str], *, path: str = "") -> Q:
    """Reservations whose meeting begins within the period, by the clock of its center.

    `zones` are the time zones of all centers that are asked about; `path` leads to the reservation.
    """
    return filter_by_local_span(zones, period.span, path=path)


def filter_by_local_span(
    zones: Iterable[str], reading: Callable[[str], Span], *, path: str = ""
) -> Q:
    """Reservations that begin within the span that their center's clock makes of it.

    Most lie within it by every clock. Only of the others, at its ends, the center is looked up:
    to look up those of a whole month takes longer than to add up their bills.
    """
    spans = group_zones(zones, reading)
    if not spans:
        return Q(pk__in=[])
    starts, ends = [span.start for span, _ in spans], [span.end for span, _ in spans]
    roughly = _filter_by_start(min(starts), max(ends), path)
    surely = Q(pk__in=[])
    if max(starts) < min(ends):
        surely = _filter_by_start(max(starts), min(ends), path)
    if len(spans) == 1:
        return surely
    exactly = Q(pk__in=[])
    for span, names in spans:
        exactly |= _filter_by_start(span.start, span.end) & Q(center__time_zone_id__in=names)
    begins = ExpressionWrapper(OuterRef(f"{path}start"), output_field=DateTimeField())
    room = MeetingRoom.objects.filter(pk=OuterRef(f"{path}room")).annotate(start=begins)
    return roughly & (surely | Q(Exists(room.filter(exactly))))


def _filter_by_start(first: dt.datetime, last: dt.datetime, path: str = "") -> Q:
    return Q(**{f"{path}start__gte": first, f"{path}start__lt": last})


def annotate_month_index(
    period: ReportPeriod, zones: Iterable[str], *, path: str = ""
) -> Case | Value:
    """Which of `period.months()` a meeting of the period begins in, by its center's clock."""
    later = period.months()[1:]
    if not later:
        return Value(0)

    def turns(zone: str) -> tuple[dt.datetime, ...]:
        return tuple(get_local_midnight(month, places.get_time_zone(zone)) for month in later)

    whens = []
    for moments, names in group_zones(zones, turns):
        steps = [
            When(**{f"{path}start__lt": moment}, then=Value(number))
            for number, moment in enumerate(moments)
        ]
        month = Case(*steps, default=Value(len(later)), output_field=IntegerField())
        whens.append(When(**{f"{path}room__center__time_zone_id__in": names}, then=month))
    return Case(*whens, default=Value(0), output_field=IntegerField())


def group_zones(zones: Iterable[str], reading: Callable[[str], Any]) -> list[tuple[Any, list[str]]]:
    """Zones whose clocks read alike, together: few questions, whatever the number of zones."""
    groups: dict[Any, list[str]] = {}
    for zone in sorted(set(zones)):
        groups.setdefault(reading(zone), []).append(zone)
    return list(groups.items())
