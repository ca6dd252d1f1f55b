"""Periods of local days, and database conditions for them.

A day begins and ends by the local time of each center. The start and end of a period are computed
here in UTC, time zone by time zone, and the database gets timestamps only. So both databases give
the same result, also on days on which the clocks change, and neither needs time zone data.
"""

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import (
    Case,
    DateField,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    Value,
    When,
)

from centers.models import MeetingRoom
from centers.span import Span, get_local_midnight
from roombook import places
from roombook.dates import add_months

T = TypeVar("T")

DAY = dt.timedelta(days=1)
# No time zone is further from UTC than this.
MAX_UTC_OFFSET = dt.timedelta(hours=26)


@dataclass(frozen=True, slots=True)
class LocalDays:
    """Local days from the first to the last, both included."""

    first: dt.date
    last: dt.date

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("A period begins before it ends.")

    @classmethod
    def from_month(cls, day: dt.date) -> "LocalDays":
        """The calendar month of a day."""
        return cls(add_months(day, 0), add_months(day, 1) - DAY)

    @property
    def label(self) -> str:
        """The period in the name of a file: ``2027-03``, or both days."""
        if self == self.from_month(self.first):
            return f"{self.first:%Y-%m}"
        return f"{self.first}-to-{self.last}"

    @property
    def length(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def months(self) -> tuple[dt.date, ...]:
        """The first day of each calendar month that the period overlaps."""
        first = self.first.replace(day=1)
        count = (self.last.year - first.year) * 12 + self.last.month - first.month + 1
        return tuple(add_months(first, number) for number in range(count))

    def span(self, time_zone_id: str) -> Span:
        """The period in a time zone."""
        zone = places.get_time_zone(time_zone_id)
        return Span(get_local_midnight(self.first, zone), get_local_midnight(self.last + DAY, zone))

    def widest_span(self) -> Span:
        """A span that contains the period in every time zone."""
        first = dt.datetime.combine(self.first, dt.time(), tzinfo=dt.UTC)
        last = dt.datetime.combine(self.last, dt.time(), tzinfo=dt.UTC)
        return Span(first - MAX_UTC_OFFSET, last + DAY + MAX_UTC_OFFSET)


def filter_by_local_span(
    zones: Iterable[str], get_span: Callable[[str], Span], *, path: str = ""
) -> Q:
    """Reservations that start within the span that belongs to the time zone of their center.

    ``zones`` are the time zones of all centers in question, ``path`` leads to the reservation.

    Most reservations lie within the spans of all time zones. The center is looked up for the
    others only: to look up the centers of a whole month takes longer than to add up its bills.
    """
    spans = group_zones(zones, get_span)
    if not spans:
        return Q(pk__in=[])
    starts, ends = [span.start for span, _ in spans], [span.end for span, _ in spans]
    in_some_zone = _filter_by_start(min(starts), max(ends), path)
    in_every_zone = Q(pk__in=[])
    if max(starts) < min(ends):
        in_every_zone = _filter_by_start(max(starts), min(ends), path)
    if len(spans) == 1:
        return in_every_zone
    in_own_zone = Q(pk__in=[])
    for span, names in spans:
        in_own_zone |= _filter_by_start(span.start, span.end) & Q(center__time_zone_id__in=names)
    start = ExpressionWrapper(OuterRef(f"{path}start"), output_field=DateTimeField())
    room = MeetingRoom.objects.filter(pk=OuterRef(f"{path}room")).annotate(start=start)
    return in_some_zone & (in_every_zone | Q(Exists(room.filter(in_own_zone))))


def _filter_by_start(first: dt.datetime, last: dt.datetime, path: str = "") -> Q:
    return Q(**{f"{path}start__gte": first, f"{path}start__lt": last})


def build_month(period: LocalDays, zones: Iterable[str]) -> Case | Value:
    """An expression for the local month, within the period, in which a reservation starts."""
    first, *later_months = period.months()

    def get_month_starts(zone: str) -> tuple[dt.datetime, ...]:
        return tuple(
            get_local_midnight(month, places.get_time_zone(zone)) for month in later_months
        )

    cases = []
    for month_starts, names in group_zones(zones, get_month_starts):
        whens = [
            When(start__lt=month_start, then=_build_date(month))
            for month, month_start in zip(period.months(), month_starts, strict=False)
        ]
        month = Case(*whens, default=_build_date(period.last.replace(day=1)))
        cases.append(When(room__center__time_zone_id__in=names, then=month))
    return Case(*cases, default=_build_date(first)) if later_months else _build_date(first)


def _build_date(day: dt.date) -> Value:
    return Value(day, output_field=DateField())


def group_zones(zones: Iterable[str], get_value: Callable[[str], T]) -> list[tuple[T, list[str]]]:
    """Group time zones by a value, so that conditions do not grow with the number of zones."""
    groups: dict[T, list[str]] = {}
    for zone in sorted(set(zones)):
        groups.setdefault(get_value(zone), []).append(zone)
    return list(groups.items())
