"""What a report covers: a period, and optionally some centers and room types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import Expression, F, Model, Q, QuerySet

from centers.models import Center
from reservations.reports.periods import ReportPeriod, build_month_index, filter_by_local_span

# With more centers than this, a report has no row for each center.
MAX_CENTERS = 2_000
# The longest period, in days, for more than MAX_CENTERS centers.
MAX_DAYS_OF_MANY_CENTERS = 100
# The most groups (a center in a month, ...) that a report reads.
MAX_GROUPS = 100_000


RowT = TypeVar("RowT")
# A row of ``ReportSelection.fetch_sums``: keys and sums.
ReportGroup = Mapping[str, Any]


class ReportTooLarge(Exception):
    """The report would keep the database busy for too long. The message says what to select."""


@dataclass(frozen=True)
class ReportSelection:
    """The period, the ids of the centers and of the room types; None means all."""

    period: ReportPeriod
    centers: frozenset[int] | None = None
    room_types: frozenset[int] | None = None

    def filter_centers(self, path: str) -> Q:
        """Limits rows to the selected centers; ``path`` leads to the center."""
        return Q() if self.centers is None else Q(**{f"{path}__in": sorted(self.centers)})

    def filter_rooms(self, path: str) -> Q:
        """Limits rows to the selected centers and room types; ``path`` is "" or ends in "__"."""
        return self.filter_centers(f"{path}center") & self.filter_room_types(path)

    def filter_room_types(self, path: str) -> Q:
        """Limits rows to the selected room types; ``path`` leads to the room, as above."""
        if self.room_types is None:
            return Q()
        return Q(**{f"{path}resource_type__in": sorted(self.room_types)})

    def filter_reservations(self, path: str = "") -> Q:
        """Limits rows to reservations of the selected rooms that start within the period.

        The period is in the local time of each center.
        """
        in_period = filter_by_local_span(self.zones, self.period.span, path=path)
        return self.filter_rooms(f"{path}room__") & in_period

    @cached_property
    def zones(self) -> list[str]:
        """The time zones of the selected centers."""
        return Center.objects.filter(self.filter_centers("pk")).list_time_zones()

    @cached_property
    def lists_centers(self) -> bool:
        """Whether the centers are few enough for a row each.

        Raises:
            ReportTooLarge: there are more, and the period is long.
        """
        if self.centers is not None:
            count = len(self.centers)
        else:
            count = Center.objects.all()[: MAX_CENTERS + 1].count()
        if count > MAX_CENTERS and self.period.length > MAX_DAYS_OF_MANY_CENTERS:
            raise ReportTooLarge(
                f"These are more than {MAX_CENTERS:,} centers. Choose some of them, or at most"
                f" {MAX_DAYS_OF_MANY_CENTERS} days."
            )
        return count <= MAX_CENTERS

    def fetch_sums(
        self, rows: QuerySet[Model], sums: Mapping[str, Expression]
    ) -> list[ReportGroup]:
        """Sum up reservations by month and center.

        Each group has the sums, ``month`` (its first day) and ``center`` (None if centers are not
        listed).

        Raises:
            ReportTooLarge: there are too many groups.
        """
        months = self.period.months()
        keys: dict[str, Expression | F] = {
            "month_index": build_month_index(self.period, self.zones)
        }
        # Grouping by center joins the room of each reservation.
        if self.lists_centers:
            keys["center"] = F("room__center")
        grouped = rows.order_by().annotate(**keys).values(*keys).annotate(**sums)
        groups = fetch_at_most(
            MAX_GROUPS,
            grouped,
            "This is too much for one report. Choose fewer days, or some centers.",
        )
        return [
            {"center": None, **group, "month": months[group["month_index"]]} for group in groups
        ]


def fetch_at_most(limit: int, rows: QuerySet[Model, RowT], advice: str) -> list[RowT]:
    """Read the rows, or raise ReportTooLarge with the advice if there are more than the limit."""
    found = list(rows[: limit + 1])
    if len(found) > limit:
        raise ReportTooLarge(advice)
    return found
