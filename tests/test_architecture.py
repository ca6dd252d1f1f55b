"""Layers, import cycles, who moves money, names of classes and lengths of modules."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.import_graph import (
    build_graph,
    find_classes,
    find_cycle,
    get_product_files,
    get_test_files,
    parse_product,
)

MAX_LINES = 800


def test_imports_follow_the_contracts_of_import_linter():
    # In its own process: import-linter disables the loggers of the process it runs in.
    program = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([program, "--no-cache"], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout


def test_modules_do_not_import_each_other_in_cycles():
    assert " -> ".join(find_cycle(build_graph(parse_product()))) == ""


def test_no_two_classes_share_a_name():
    modules = defaultdict(list)
    for module, tree in parse_product().items():
        for name in find_classes(tree):
            modules[name].append(module)

    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def test_no_module_is_longer_than_800_lines():
    lengths = {
        name: len(path.read_text().splitlines())
        for name, path in {**get_product_files(), **get_test_files()}.items()
    }

    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_only_charging_captures_voids_and_refunds_payments():
    steps = {"capture_payment", "void_payment", "execute_refund"}
    callers = {
        module
        for module, tree in parse_product().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in steps
    }

    assert callers == {"reservations.booking.charging"}
