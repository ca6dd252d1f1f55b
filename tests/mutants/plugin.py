"""Run tests against mutants in processes forked from pytest: `-p tests.mutants.plugin`.

The process that forks has loaded Django, collected the tests and migrated a database. First it runs
each file once, to learn which lines each test reaches and how long it takes. Results are kept in
FOLDER, so that a run goes on where it was stopped. The test that found a mutant in the run before
is the first to run against it, so that measuring again takes a quarter of the time.
"""

import functools
import gc
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from django.db import connection

from tests.mutants import ROOT, TARGETS, read_results

FOLDER = Path(os.environ["MUTANTS_FOLDER"])
PART, PARTS = map(int, os.environ["MUTANTS_PART"].split("/"))
# The tests of a mutant take at most so many seconds of the processor on the unchanged code.
BUDGET = float(os.environ.get("MUTANTS_BUDGET", "60"))
FILE_SECONDS = 900
ITEMS: dict[str, pytest.Item] = {}
FUNCTIONS: list[FunctionType] = []
REPORTS: list[pytest.TestReport] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    first = next(item for item in session.items if item.path.name == "prepare.py")
    items = [item for item in session.items if item is not first]
    # Sets the database up. Fixtures of the session live as long as there is a next item.
    if not passes(first, items[0]):
        raise pytest.UsageError("the database was not set up")
    connection.close()
    gc.unfreeze()  # Only then the collector lists all functions.
    paths = {str(path) for path in TARGETS}
    functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    FUNCTIONS.extend(each for each in functions if each.__code__.co_filename in paths)
    gc.freeze()
    ITEMS.update((item.nodeid, item) for item in items)
    run_checks(learn_reach(items))
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    REPORTS.append(report)


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    REPORTS.clear()
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    return not any(report.failed for report in REPORTS)


def learn_reach(items: list[pytest.Item]) -> dict[str, Any]:
    """Run each file that has changed since the last time, then wait for the other processes."""
    (FOLDER / "reach").mkdir(exist_ok=True)
    files = []
    for number, path in enumerate(dict.fromkeys(item.path for item in items)):
        name = sha256(path.read_bytes() + str(path).encode()).hexdigest()[:20]
        files.append(FOLDER / "reach" / f"{name}.json")
        if number % PARTS == PART and not files[-1].exists():
            chosen = [item for item in items if item.path == path]
            if fork(functools.partial(measure, chosen, files[-1]), FILE_SECONDS) != 0:
                files[-1].write_text("{}")
    while not all(file.exists() for file in files):
        time.sleep(1)
    found = [json.loads(file.read_text()) for file in files]
    return {node: each for nodes in found for node, each in nodes.items() if node in ITEMS}


def measure(items: list[pytest.Item], file: Path) -> bool:
    """Run the tests of a file, and store their durations and the lines that they reach."""
    cover = coverage.Coverage(None, config_file=False, include=[str(path) for path in TARGETS])
    cover.set_option("run:disable_warnings", ["no-data-collected"])
    cover.start()
    found: dict[str, Any] = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        cover.switch_context(item.nodeid)
        began = time.process_time()
        if passes(item, following):
            found[item.nodeid] = {"seconds": time.process_time() - began, "lines": []}
    cover.stop()
    data = cover.get_data()
    for path in TARGETS:
        for line, nodes in data.contexts_by_lineno(str(path)).items():
            for node in found.keys() & {*nodes}:
                found[node]["lines"].append(f"{path.relative_to(ROOT)}:{line}")
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(file)
    return True


def run_checks(reach: dict[str, Any]) -> None:
    done, before = read_results(FOLDER, "results-*"), read_results(FOLDER, "last-results-*")
    finders: Counter[str] = Counter()
    mutants = json.loads((FOLDER / "sample.json").read_text())
    # In random order, so that a part of the results is a sample too.
    mutants.sort(key=lambda mutant: sha256(mutant["key"].encode()).hexdigest())
    for mutant in mutants[PART::PARTS]:
        if mutant["key"] not in done:
            result = check(mutant, reach, finders, before.get(mutant["key"], {}).get("by"))
            with (FOLDER / f"results-{PART}.jsonl").open("a") as file:
                print(json.dumps({"key": mutant["key"], **result}), file=file)


def check(
    mutant: dict[str, Any], reach: dict[str, Any], finders: Counter[str], first: str | None
) -> dict[str, Any]:
    nodes: list[str] = []
    text = mutant["source"].splitlines()
    # A line inside a statement may have no code of its own: take the one before.
    for line in range(mutant["line"], mutant["line"] - 10, -1):
        if text[line - 1].lstrip().startswith(("def ", "@", "class ")):
            break
        nodes = nodes or [n for n in reach if f"{mutant['file']}:{line}" in reach[n]["lines"]]
    chosen = choose(nodes, reach, finders, first)
    seconds = sum(reach[node]["seconds"] for node in chosen)
    finder = FOLDER / f"finder-{PART}"
    finder.write_text("")
    items = [ITEMS[node] for node in chosen]
    began = time.monotonic()
    passed = (
        not items or fork(functools.partial(run, mutant, items, finder), 60 + 20 * seconds) == 0
    )
    finders[finder.read_text()] += 1
    return {
        "state": "survived" if passed else "found",
        "by": finder.read_text(),
        "tests": f"{len(chosen)} of {len(nodes)}",
        "seconds": round(time.monotonic() - began, 1),
    }


def choose(
    nodes: list[str], reach: dict[str, Any], finders: Counter[str], first: str | None
) -> list[str]:
    """`first`, tests that have found other mutants, the cheapest of each file, then the others."""
    by_file: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: reach[node]["seconds"]):
        by_file.setdefault(node.partition("::")[0], []).append(node)
    ranks = {node: rank // 4 for each in by_file.values() for rank, node in enumerate(each)}
    ranks.update((node, -1) for node in finders.keys() & {*nodes})
    ranks.update((node, -2) for node in {*nodes} & {first})
    chosen, seconds = [], 0.0
    for node in sorted(nodes, key=lambda node: (ranks[node], reach[node]["seconds"])):
        seconds += reach[node]["seconds"]
        if not chosen or seconds < BUDGET:
            chosen.append(node)
    return chosen


def run(mutant: dict[str, Any], items: list[pytest.Item], finder: Path) -> bool:
    """Whether all tests pass with the mutant. They stop at the first that fails."""
    path = str(ROOT / mutant["file"])
    codes = dict(list_codes(compile(mutant["source"], path, "exec")))
    for each in FUNCTIONS:
        # Exchange the code in place: other modules have imported the function, or wrapped it.
        key = each.__code__.co_qualname, each.__code__.co_firstlineno
        if each.__code__.co_filename == path and key in codes:
            each.__code__ = codes[key]
    for item, following in zip(items, [*items[1:], None], strict=True):
        finder.write_text(item.nodeid)
        if not passes(item, following):
            return False
    finder.write_text("")
    return True


def list_codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield (const.co_qualname, const.co_firstlineno), const
            yield from list_codes(const)


def fork(function: Callable[[], bool], limit: float) -> int | None:
    """The exit status of a process with a copy of the database, None if it takes too long."""
    if (pid := os.fork()) == 0:
        status = 2
        try:
            os.setsid()
            name = connection.settings_dict["NAME"]
            connection.settings_dict["NAME"] = shutil.copy(name, f"{name}-{PART}")
            status = 0 if function() else 1
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)
    deadline = time.monotonic() + limit
    found, status = 0, 0
    while not found and time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # also what the tests have started
    if not found:
        os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if found else None
