"""The benchmark runs, and all servers give the same responses. Speed is not tested."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.cases import PATHS
from tests.faults.size import LONG
from tests.pg_plugin import find_programs

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def folder():
    # Not pytest's folder: if the tests run as root, PostgreSQL cannot enter it.
    folder = Path(f"/tmp/roombook-bench-{os.getpid()}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


# It starts its own PostgreSQL server, so it runs once, with the tests that use no database.
@pytest.mark.skipif(
    not LONG or find_programs() is None, reason="starts a cluster and three servers: make faults"
)
def test_quick_run_measures_operations_on_all_servers_without_errors(folder):
    only = [f"--only={name}" for name in (*PATHS, "conflicts")]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "--size=300", "--folder", folder, *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    for server in ("raw-prepared", "raw-unprepared", "roombook"):
        measured = re.findall(
            rf"^\| (\w+) \| {server} \|.*\| 0 \|[^|]*\|[^|]*\|[^|]*\|$", ran.stdout, re.M
        )
        assert measured == [*PATHS]
    # Sixteen clients want each of three slots. One gets it, and there is no deadlock.
    assert re.search(r"^\| roombook \| 3 \| 3 \| 0 \| \d+ \| 0 \|$", ran.stdout, re.M)
