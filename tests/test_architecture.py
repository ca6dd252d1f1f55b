"""Layers, import cycles, names of classes and lengths of modules."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.import_graph import (
    build_graph,
    find_classes,
    find_cycles,
    get_product_files,
    parse_product,
)

MAX_LINES = 400

# What remains to be done. Remove an entry when it is done: an entry that is not needed fails.
KNOWN_CYCLES: list[set[str]] = []
KNOWN_SHARED_CLASS_NAMES: set[str] = set()
KNOWN_LONG_MODULES: set[str] = set()


def test_imports_follow_the_contracts_of_import_linter():
    # In its own process: import-linter disables the loggers of the process it runs in.
    program = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([program, "--no-cache"], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout


def test_modules_do_not_import_each_other_in_cycles():
    cycles = find_cycles(build_graph(parse_product()))

    unknown = [
        " -> ".join(cycle)
        for cycle in cycles
        if not any(known.issuperset(cycle) for known in KNOWN_CYCLES)
    ]
    assert unknown == []
    done = [known for known in KNOWN_CYCLES if not any(known.issuperset(each) for each in cycles)]
    assert done == [], "remove these from the list"


def test_cycles_of_hidden_imports_are_found():
    trees = {
        "accounts.models": ast.parse("def f():\n    from accounts.emails import send"),
        "accounts.emails": ast.parse(
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from accounts.outbox import row"
        ),
        "accounts.outbox": ast.parse("import accounts.models"),
        "accounts.roles": ast.parse("from accounts import models"),
    }

    assert find_cycles(build_graph(trees)) == [
        ["accounts.emails", "accounts.outbox", "accounts.models", "accounts.emails"]
    ]


def test_models_and_querysets_may_name_each_other_for_types_only():
    model = "from centers.querysets import CenterQuerySet"
    queryset = "if TYPE_CHECKING:\n    from centers.models import Center"
    trees = {"centers.models": ast.parse(model), "centers.querysets": ast.parse(queryset)}

    assert find_cycles(build_graph(trees)) == []
    trees["centers.querysets"] = ast.parse("from centers.models import Center")
    assert find_cycles(build_graph(trees)) == [
        ["centers.models", "centers.querysets", "centers.models"]
    ]


def test_no_two_classes_share_a_name():
    modules = defaultdict(list)
    for module, tree in parse_product().items():
        for name in find_classes(tree):
            modules[name].append(module)
    shared = {name: found for name, found in modules.items() if len(found) > 1}

    assert {name: shared[name] for name in shared.keys() - KNOWN_SHARED_CLASS_NAMES} == {}
    assert KNOWN_SHARED_CLASS_NAMES - shared.keys() == set(), "remove these from the list"


def test_no_module_is_longer_than_400_lines():
    long = {
        name
        for name, path in get_product_files().items()
        if len(path.read_text().splitlines()) > MAX_LINES
    }

    assert long - KNOWN_LONG_MODULES == set()
    assert KNOWN_LONG_MODULES - long == set(), "remove these from the list"
