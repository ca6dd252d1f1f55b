"""Each planted defect of availability, prices, amendments and limits is found by a test."""

import json
import subprocess
import sys

import pytest

from tests.faults.size import LONG
from tests.reservations.planted_defects import GROUPS

pytestmark = pytest.mark.skipif(not LONG, reason="runs many tests with each defect: make faults")
# The tests of each group, in the order in which they are tried.
TESTS = {
    "availability": [
        "tests/reservations/test_availability.py",
        "tests/reservations/test_constraints.py",
    ],
    "prices": ["tests/centers/test_rates.py", "tests/reservations/test_pricing.py"],
    "amendments": ["tests/reservations/test_rescheduling.py"],
    "limits": ["tests/accounts/test_limits.py"],
}


@pytest.mark.parametrize("group", GROUPS)
def test_planted_defects_are_found(group, tmp_path):
    found = tmp_path / "found.json"
    plugin = ["-p", "tests.reservations.planting_plugin", f"--plant={group}", f"--found={found}"]
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *options, *TESTS[group]],
        check=False,
        capture_output=True,
        text=True,
    )

    assert found.exists(), run.stdout + run.stderr
    failed = json.loads(found.read_text())
    assert failed.pop("") == "", "A test fails without a defect."
    wrong = {name: test for name, test in failed.items() if not test.startswith("tests/")}
    assert wrong == {}
    assert failed.keys() == GROUPS[group].keys()
