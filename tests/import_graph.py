"""The product's modules and their imports, read from the source text.

Every import counts: at the top of a module, inside a function and under `if TYPE_CHECKING:`. The
last two hide a cycle from Python, but not from a reader.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("accounts", "centers", "payments", "reservations", "roombook")

Graph = dict[str, set[str]]


def get_product_files() -> dict[str, Path]:
    """Every module of the product by its dotted name, without migrations."""
    return get_files(PACKAGES)


def get_test_files() -> dict[str, Path]:
    """Every module of the tests by its dotted name."""
    return get_files(["tests"])


def get_files(packages: Iterable[str]) -> dict[str, Path]:
    files = {}
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def parse_product() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text()) for name, path in get_product_files().items()}


def build_graph(trees: Mapping[str, ast.Module]) -> Graph:
    """The modules that each module imports.

    Models and querysets of one app may name each other for types.
    """
    graph: Graph = {}
    for name, tree in trees.items():
        type_only = {
            id(node)
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
            for node in ast.walk(block)
        }
        graph[name] = {
            target
            for node in ast.walk(tree)
            for target in find_imported_modules(node, trees)
            if target != name
            and not (id(node) in type_only and are_models_of_one_app(name, target))
        }
    return graph


def find_imported_modules(node: ast.AST, known: Mapping[str, ast.Module]) -> Iterator[str]:
    """The modules of the product that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            if submodule in known:
                yield submodule
            elif node.module in known:
                yield node.module


def are_models_of_one_app(first: str, second: str) -> bool:
    apps, kinds = zip(*(module.split(".")[:2] for module in (first, second)), strict=True)
    return len(set(apps)) == 1 and set(kinds) <= {"models", "querysets"}


def find_cycle(graph: Graph) -> list[str]:
    """Modules of which each imports the next, and the last one is the first; empty without any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def find_classes(tree: ast.Module) -> Iterator[str]:
    """The names of all classes of a module, nested ones too, except those that Django names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name not in CONVENTIONAL_NAMES:
            yield node.name


# Names that Django, DRF or the operations of the API prescribe.
CONVENTIONAL_NAMES = {"Command", "Input", "Media", "Meta", "Output"}
