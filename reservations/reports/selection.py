"""What a report covers: a period, and optionally some centers and room types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from django.db.models import Expression, F, Model, Q, QuerySet

from centers.models import Center
from reservations.local_days import LocalDays, filter_by_local_span
from reservations.reports.cube import Cube, Member, Sums

# With more centers than this, a report has no row for each center.
MAX_CENTERS = 2_000
# The most groups (a center in a month, ...) that a report reads.
MAX_GROUPS = 100_000
TOO_LARGE = "This is too much for one report. Choose fewer days, or some centers."

RowT = TypeVar("RowT")


class ReportTooLarge(Exception):
    """The report would keep the database busy for too long. The message says what to select."""


@dataclass(frozen=True)
class ReportSelection:
    """The period, the ids of the centers and of the room types; None means all."""

    period: LocalDays
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
        """Whether the centers are few enough for a row each."""
        if self.centers is not None:
            return len(self.centers) <= MAX_CENTERS
        return Center.objects.all()[: MAX_CENTERS + 1].count() <= MAX_CENTERS

    @property
    def center_note(self) -> str:
        """What a table by center says if there are too many centers."""
        if self.lists_centers:
            return ""
        return f"These are more than {MAX_CENTERS:,} centers: choose some to see a line of each."

    def add_up(
        self,
        rows: QuerySet[Model],
        sums: Mapping[str, Expression],
        *,
        center: str = "",
        **dimensions: tuple[str | Expression, ...],
    ) -> Cube:
        """Add up rows by dimensions, and by center unless there are too many; it has all months.

        A dimension is an expression for its values, or two for the name and the id of a row.
        ``center`` leads to the center; "" adds up all centers.

        Raises:
            ReportTooLarge: there are too many groups.
        """
        if center and self.lists_centers:  # Grouping by center joins the room of each reservation.
            dimensions["center"] = (f"{center}__name", center)
        keys = {
            f"{name}_{number}": F(each) if isinstance(each, str) else each
            for name, expressions in dimensions.items()
            for number, each in enumerate(expressions)
        }
        grouped = rows.order_by().annotate(**keys).values_list(*keys)
        grouped = grouped.annotate(**{f"sum_{name}": each for name, each in sums.items()})
        facts = [({"month": month}, Sums()) for month in self.period.months()]
        for row in fetch_at_most(MAX_GROUPS, grouped, TOO_LARGE):
            values = iter(row)
            members = {
                name: _read_member(*islice(values, len(expressions)))
                for name, expressions in dimensions.items()
            }
            numbers = zip(sums, values, strict=True)
            facts.append((members, Sums({name: int(number) for name, number in numbers if number})))
        return Cube(facts)


def _read_member(value: Any, pk: int | None = None) -> Any:
    return value if pk is None else Member(value, pk)


def fetch_at_most(limit: int, rows: QuerySet[Model, RowT], advice: str) -> list[RowT]:
    """Read the rows, or raise ReportTooLarge with the advice if there are more than the limit."""
    found = list(rows[: limit + 1])
    if len(found) > limit:
        raise ReportTooLarge(advice)
    return found
