"""Charts as plain figures: what a template needs to draw columns, bars or a heat map in HTML.

No script and no picture: a chart is text that has a length, so it scales, prints, is read out, and
follows the dark theme. Beside each stands, or is, a table with the same figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from babel.dates import get_day_names
from django.conf import settings

from reservations.admin.reports.tables import format_percent
from reservations.admin.reports.utilization import UsedTime, WeekdayHour


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar of a chart: `length` is 0 to 100, `shown` what it stands for in words."""

    label: str
    shown: str
    length: str
    hint: str = ""
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars with one scale; `title` says what they show."""

    title: str
    bars: Sequence[ChartBar]

    @property
    def told(self) -> str:
        """The chart in a sentence, for who cannot see it."""
        return f"{self.title}: " + ", ".join(f"{bar.label} {bar.shown}" for bar in self.bars)


def build_chart(
    title: str, bars: Iterable[tuple[str, float, str, str]], *, full: float = 0
) -> Chart:
    """Of (label, size, words, hint); the longest fills the height, or what is `full` does."""
    found = list(bars)
    top = full or max((size for _, size, _, _ in found), default=0)
    return Chart(
        title,
        [
            ChartBar(label, shown, scale_length(size, top), hint)
            for label, size, shown, hint in found
        ],
    )


def scale_length(size: float, top: float) -> str:
    """How much of the whole, 0 to 100; with a point whatever the locale."""
    return f"{min(max(size / top, 0), 1) * 100:.1f}" if top else "0"


def get_weekday_names(width: str = "abbreviated") -> list[str]:
    """Monday first."""
    names = get_day_names(width, locale=settings.LOCALE)  # type: ignore[arg-type]
    return [names[number] for number in range(7)]


def build_weekday_chart(title: str, uses: dict[int, UsedTime]) -> Chart:
    """Utilization, Monday to Sunday; a day that is never open has no bar."""
    return build_chart(
        title,
        [
            (
                name,
                use.share or 0,
                "-" if use.share is None else format_percent(use.share),
                _format_hours(use),
            )
            for number, name in enumerate(get_weekday_names())
            for use in [uses.get(number, UsedTime())]
        ],
        full=1,
    )


def _format_hours(use: UsedTime) -> str:
    return f"{use.sold / 3600:,.1f} of {use.opened / 3600:,.1f} hours"


# --- Heat map ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """A cell of a heat map: `strength` is 0 to 100 of the strongest, None where it is closed."""

    shown: str
    strength: int | None
    hint: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    title: str
    hours: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]


def build_heat_map(title: str, cells: dict[WeekdayHour, UsedTime]) -> HeatMap:
    """Weekdays down and hours across: from the first to the last hour in which anything is open."""
    hours = sorted({hour for (_, hour), use in cells.items() if use.opened})
    across = range(hours[0], hours[-1] + 1) if hours else range(0)
    top = max((use.share or 0 for use in cells.values()), default=0) or 1
    rows = [
        (
            name,
            [
                _build_heat_map_cell(cells.get((day, hour), UsedTime()), name, hour, top)
                for hour in across
            ],
        )
        for day, name in enumerate(get_weekday_names())
    ]
    return HeatMap(title, [f"{hour:02}" for hour in across], rows)


def _build_heat_map_cell(use: UsedTime, day: str, hour: int, top: float) -> HeatMapCell:
    when = f"{day} {hour:02}:00-{(hour + 1) % 24:02}:00"
    if use.share is None:
        return HeatMapCell("", None, f"{when}: closed")
    return HeatMapCell(
        f"{use.share * 100:.0f}", round(use.share / top * 100), f"{when}: {_format_hours(use)}"
    )
