"""Mutation testing: do the tests notice a small change of the code that computes and decides?

`make mutants` changes one operator, number or condition at a time, and runs the tests that reach
the line, those of each file that are cheapest first, until one fails. cosmic-ray makes the mutants
in an environment of its own (sample.py). They run in processes forked from one that has loaded
Django, collected the tests and migrated a database (plugin.py).
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PATTERNS = [
    *("centers/rates.py", "centers/hours.py", "reservations/availability.py"),
    *("reservations/pricing/*.py", "reservations/booking/*.py"),
    *("payments/lifecycle.py", "payments/refunds.py", "accounts/limits.py"),
]
TARGETS = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))


def read_results(folder: Path, pattern: str) -> dict[str, dict[str, Any]]:
    """The results of mutants by their keys."""
    lines = [line for path in folder.glob(pattern) for line in path.read_text().splitlines()]
    return {each["key"]: each for each in map(json.loads, lines)}
