"""The benchmark runs, and both servers give the same responses. Speed is not tested."""

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


# It starts its own PostgreSQL server, so it runs once, with the tests that use no database.
@pytest.mark.skipif(
    not LONG or find_programs() is None, reason="starts a cluster and two servers: make faults"
)
def test_short_run_measures_operations_on_both_servers_without_errors():
    # Not pytest's folder: if the tests run as root, PostgreSQL cannot enter it.
    folder = f"/tmp/roombook-bench-{os.getpid()}"
    words = ["tests.bench", "--size=300", "--rounds=2", "--seconds=0.2", "--folder", folder]
    try:
        ran = subprocess.run(
            [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=600
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    for server in ("raw", "roombook"):
        measured = re.findall(
            rf"^\| (\w+) \| {server} \|.*\| 0 \|[^|]*\|[^|]*\|$", ran.stdout, re.M
        )
        assert measured == [*PATHS]
