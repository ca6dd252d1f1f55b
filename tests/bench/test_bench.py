"""The benchmark itself runs, and both servers answer the same: never how fast."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.cases import PATHS

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def folder():
    # Not pytest's own, which PostgreSQL may not enter where the tests run as root.
    folder = Path(f"/tmp/roombook-bench-{os.getpid()}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.postgres
def test_both_servers_answer_the_same_and_everything_is_measured(folder):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "--size", "300", "--folder", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    measured = re.findall(r"^\| (\w+) \| raw \|.*\| 0 \|(?: +\|){3}$", ran.stdout, re.M)
    assert measured == [*PATHS]
    # Three slots that sixteen want: each is got by one, and nobody waits for another in a circle.
    assert re.search(r"^\| roombook \| 3 \| 3 \| 0 \| \d+ \| 0 \|$", ran.stdout, re.M)
