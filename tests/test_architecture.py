"""Who may import whom: the contracts stand in pyproject.toml."""

import subprocess
import sys
from pathlib import Path


def test_imports_go_one_way():
    # In a process of its own: the tool switches the loggers of the one that it runs in off.
    program = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([program, "--no-cache"], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout
