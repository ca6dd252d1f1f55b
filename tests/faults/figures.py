"""The figures that the fault tests measure, printed as a table at the end of `make faults`."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from tests.faults.client import BROKEN_CONNECTION, Answer


@dataclass
class CaseFigures:
    """The figures of a case, added up over its runs. None means not measured."""

    case: str
    runs: int = 0
    confirmed: int = 0
    captures: int = 0
    refused: int = 0
    unavailable: int = 0
    broken: int = 0
    defects: int = 0
    slowest_ms: float = 0.0
    lost: int = 0
    violations: int = 0
    control: int | None = None
    remarks: str = ""

    def count_answers(self, answers: Iterable[Answer]) -> None:
        """Count the answers that clients received."""
        for answer in answers:
            self.refused += 400 <= answer.status < 500
            self.unavailable += answer.status == 503
            self.broken += answer.status == BROKEN_CONNECTION
            self.defects += answer.is_defect
            self.slowest_ms = max(self.slowest_ms, answer.ms)


TITLES = {
    "case": "case",
    "runs": "runs",
    "confirmed": "confirmed",
    "captures": "captures",
    "refused": "refused",
    "unavailable": "503",
    "broken": "resets",
    "defects": "other 5xx",
    "slowest_ms": "slowest ms",
    "lost": "lost",
    "violations": "violations",
    "control": "control",
    "remarks": "remarks",
}

ROWS: dict[str, CaseFigures] = {}
_lock = threading.Lock()


def get_row(case: str) -> CaseFigures:
    with _lock:
        return ROWS.setdefault(case, CaseFigures(case))


def render_table() -> list[str]:
    """The table, with the cases in the order in which they first ran."""
    cells = [list(TITLES.values())]
    cells += [
        [_cell(getattr(each, one.name)) for one in fields(CaseFigures)] for each in ROWS.values()
    ]
    widths = [max(len(line[n]) for line in cells) for n in range(len(TITLES))]
    return [
        "  ".join(
            text.ljust(width) if n in {0, len(TITLES) - 1} else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if isinstance(value, float) else str(value)
