"""The suite holds on other days. Only the long form runs it: each day takes minutes.

The clock is moved within the process of the tests. So what they start besides, such as a browser or
a service, has the real time, and tests that need one are left out. They would not work with
libfaketime either, with which `time.sleep` fails on Python 3.11 and later.
"""

import os
import subprocess
import sys

import pytest

from tests.faults.size import LONG
from tests.import_graph import ROOT

pytestmark = [
    pytest.mark.skipif(not LONG, reason="Only the long form runs the suite on other days."),
    pytest.mark.skipif(
        os.environ.get("TEST_DB") == "postgres", reason="The days do not depend on the database."
    ),
]

# The clock changes in Denver, Auckland and London, shortly before it does so.
DAYS = {
    "last day of a year": "2027-12-31T23:50:00+00:00",
    "leap day": "2028-02-29T12:00:00+00:00",
    "Denver, forward": "2028-03-12T08:55:00+00:00",
    "Denver, back": "2027-11-07T07:55:00+00:00",
    "Auckland, forward": "2027-09-25T13:55:00+00:00",
    "Auckland, back": "2028-04-01T13:55:00+00:00",
    "London, forward": "2028-03-26T00:55:00+00:00",
    "London, back": "2027-10-31T00:55:00+00:00",
    # After 2038-01-19, the last day of many 32-bit clocks.
    "far ahead": "2039-06-15T10:00:00+00:00",
}
LEFT_OUT = ("bench", "browser", "clients", "faults", "test_examples.py")


@pytest.mark.parametrize("day", DAYS)
def test_suite_holds_on_other_days(day):
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"),
        *("-p", "tests.faults.other_day", "-n", "auto", "--dist", "loadfile"),
        *(f"--ignore=tests/{name}" for name in LEFT_OUT),
        "tests",
    ]

    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "TEST_DAY": DAYS[day], "FAULTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2_000:]
    assert " passed" in result.stdout
