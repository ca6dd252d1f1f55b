"""Measure the tests: `make mutants`. See `python -m tests.mutants --help`."""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

from tests.locks import MUTANTS_LOCK, install_lock
from tests.mutants import ROOT, TARGETS, read_results

PREPARE = "tests/mutants/prepare.py"
# Tests in a browser, at random or with other processes take minutes, and find little more.
LEFT_OUT = [
    *("bench", "browser", "clients", "contract", "faults", "payments/machine", "test_guide.py"),
]
ACCEPTED = ROOT / "tests/mutants/accepted.txt"


def main() -> int:
    parser = argparse.ArgumentParser(description="Change the code, and see whether a test fails.")
    parser.add_argument("tests", nargs="*", default=["tests"])
    parser.add_argument("--folder", type=Path, default=ROOT / ".mutants", help="of the results")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(exist_ok=True)
    make_sample(folder)
    run_tests(folder, options.tests, options.processes)
    status = report(folder)
    for path in folder.glob("results-*"):
        path.rename(path.with_name(f"last-{path.name}"))  # The next run begins again.
    return status


def make_sample(folder: Path) -> None:
    """Choose the mutants. If the code has changed since the last time, forget its results."""
    sources = [*TARGETS, ROOT / "tests/mutants/sample.py"]
    version = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp, sample = folder / "version", folder / "sample.json"
    if sample.exists() and stamp.exists() and stamp.read_text() == version:
        return
    if not (folder / "env/bin/cosmic-ray").exists():
        install_lock(MUTANTS_LOCK, folder / "env")
    for old in [*folder.glob("results-*"), *folder.glob("reach/*")]:
        old.unlink()
    words = [folder / "env/bin/python", "-m", "tests.mutants.sample"]
    sample.write_bytes(subprocess.run(words, cwd=ROOT, check=True, capture_output=True).stdout)
    stamp.write_text(version)


def run_tests(folder: Path, tests: list[str], processes: int) -> None:
    ignored = [f"--ignore=tests/{name}" for name in LEFT_OUT]
    # pytest would not collect a file by its path next to the folder that contains it.
    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin", *ignored]
    options += ["--override-ini", "python_files=test_*.py prepare.py"]
    words = [sys.executable, "-m", "pytest", *options, PREPARE, *tests]
    variables = {**os.environ, "TEST_DB": "sqlite", "MUTANTS_FOLDER": str(folder)}
    running = []
    for part in range(processes):
        log = (folder / f"part-{part}.log").open("w")
        variables["MUTANTS_PART"] = f"{part}/{processes}"
        running.append(subprocess.Popen(words, cwd=ROOT, env=variables, stdout=log, stderr=log))
    if max(process.wait() for process in running):
        raise SystemExit(f"The tests did not run: see {folder}/part-*.log")


def report(folder: Path) -> int:
    """Print the figures and the survivors. Fails if one is not accepted."""
    results = read_results(folder, "results-*")
    mutants = [m for m in json.loads((folder / "sample.json").read_text()) if m["key"] in results]
    accepted = {line for line in ACCEPTED.read_text().splitlines() if line and line[0] not in "# "}
    found = Counter(m["file"] for m in mutants if results[m["key"]]["state"] == "found")
    open_ones = []
    for mutant in mutants:
        state = results[mutant["key"]]["state"]
        if state != "found":
            mark = "accepted" if mutant["key"] in accepted else state
            open_ones += [mutant] if mark != "accepted" else []
            print(f"{mutant['file']}:{mutant['line']} {mark}", mutant["key"], sep="\n  ")
            print(*(f"  - {line}" for line in mutant["removed"]), sep="\n")
            print(*(f"  + {line}" for line in mutant["added"]), sep="\n")
    for file, total in sorted(Counter(m["file"] for m in mutants).items()):
        print(f"{file:45} {found[file]:4} of {total:4}")
    print(f"{'found':45} {found.total():4} of {len(mutants):4}", f"{len(open_ones)} not accepted")
    for key in sorted(accepted - {m["key"] for m in mutants}):
        print("accepted, but no longer a mutant:", key)
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
