"""What a report is asked about: a period, some centers, some types of room."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from centers.models import Center
from reservations.admin.reports.periods import ReportPeriod, filter_by_period

# Of more centers than these, sums are told together and not each by itself.
MAX_CENTERS = 2_000
# And no more days of theirs are added up at once.
MAX_DAYS_OF_MANY_CENTERS = 100
# So many pieces of a sum (a center in a month, ...) are read for a report at most.
MAX_GROUPS = 100_000


class ReportTooLarge(Exception):
    """The report would keep the database busy for everybody; the message says what to ask for."""


@dataclass(frozen=True, slots=True)
class ReportSelection:
    """`centers` and `room_types` are ids; None is every one."""

    period: ReportPeriod
    centers: frozenset[int] | None = None
    room_types: frozenset[int] | None = None

    def of_centers(self, path: str) -> Q:
        """Only rows of these centers; `path` leads to the center."""
        return Q() if self.centers is None else Q(**{f"{path}__in": sorted(self.centers)})

    def of_rooms(self, path: str) -> Q:
        """Only rows of these centers and types; `path` leads to the room, "" is the room."""
        chosen = self.of_centers(f"{path}center")
        if self.room_types is not None:
            chosen &= Q(**{f"{path}resource_type__in": sorted(self.room_types)})
        return chosen

    def tells_centers(self) -> bool:
        """Whether these are few enough for a line each. Raises TooMuch where they are not, and the
        period is long."""
        if self.centers is not None:
            number = len(self.centers)
        else:
            number = Center.objects.all()[: MAX_CENTERS + 1].count()
        if number > MAX_CENTERS and self.period.length > MAX_DAYS_OF_MANY_CENTERS:
            raise ReportTooLarge(
                f"These are more than {MAX_CENTERS:,} centers. Choose some of them, or at most"
                f" {MAX_DAYS_OF_MANY_CENTERS} days."
            )
        return number <= MAX_CENTERS

    def zones(self) -> list[str]:
        """The time zones of the centers."""
        rows = Center.objects.filter(self.of_centers("pk")).order_by("time_zone_id")
        return list(rows.values_list("time_zone_id", flat=True).distinct())

    def starting(self, zones: Iterable[str], *, path: str = "") -> Q:
        """Reservations in these rooms whose meeting begins in the period, on the center's clock."""
        return self.of_rooms(f"{path}room__") & filter_by_period(self.period, zones, path=path)


def fetch_groups(rows: QuerySet[Any]) -> list[dict[str, Any]]:
    """Sums that the database has made, unless they are too many."""
    return fetch_at_most(
        MAX_GROUPS, rows, "This is too much for one report. Choose fewer days, or some centers."
    )


def fetch_at_most(number: int, rows: QuerySet[Any], advice: str) -> list[Any]:
    """The rows, or TooMuch with that advice."""
    found = list(rows[: number + 1])
    if len(found) > number:
        raise ReportTooLarge(advice)
    return found
