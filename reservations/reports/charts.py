"""Charts as data that templates draw in HTML: columns, bars and a heat map.

A chart needs no script and no image: it is text in boxes of a length, so it scales, prints, works
with screen readers and follows the dark theme. The same figures are in a table of the report.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from babel.dates import get_day_names
from django.conf import settings


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar: ``text`` is its value in words, ``length`` is 0 to 100."""

    label: str
    text: str
    length: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars on one scale."""

    title: str
    bars: Sequence[ChartBar]

    @property
    def description(self) -> str:
        """The chart as a sentence, for screen readers."""
        return f"{self.title}: " + ", ".join(f"{bar.label} {bar.text}" for bar in self.bars)


def build_chart(
    title: str, bars: Iterable[tuple[str, float, str, str]], *, full: float = 0
) -> Chart:
    """Build a chart from (label, value, text, hint).

    The longest bar has the full length, or a bar of the value ``full``.
    """
    bars = list(bars)
    full = full or max((value for _, value, _, _ in bars), default=0)
    return Chart(
        title,
        [ChartBar(label, text, _scale(value, full), hint) for label, value, text, hint in bars],
    )


def _scale(value: float, full: float) -> str:
    """The length of a value, 0 to 100, with a decimal point in every locale."""
    return f"{min(max(value / full, 0), 1) * 100:.1f}" if full else "0"


def get_weekday_names(width: str = "abbreviated") -> list[str]:
    """The names of the weekdays from Monday on."""
    names = get_day_names(width, locale=settings.LOCALE)  # type: ignore[arg-type]
    return [names[number] for number in range(7)]


# --- Heat map ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """A cell; ``strength`` is 0 to 100 percent of the largest value, None if closed."""

    text: str
    strength: int | None
    hint: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Weekdays as rows, hours as columns."""

    title: str
    hours: Sequence[str]
    rows: Sequence[tuple[str, Sequence[HeatMapCell]]]
