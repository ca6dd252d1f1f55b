"""Prints figures of the code: `make stats`."""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.import_graph import PACKAGES, ROOT

LARGEST_FILES = 10


def main() -> None:
    files = list_files()
    product = [path for path in files if is_product(path)]
    print_table("Lines of Python without migrations", count_lines_by_folder(product, depth=1))
    in_reservations = [path for path in product if path.parts[0] == "reservations"]
    print_table("Lines per folder of reservations", count_lines_by_folder(in_reservations, depth=2))
    lengths = Counter({str(path): count_lines(path) for path in product})
    print_table("Largest files", lengths.most_common(LARGEST_FILES))
    print_table(
        "Figures",
        [
            ("lines with Any", sum(map(count_lines_with_any, product))),
            ("migrations", sum(is_migration(path) for path in files)),
            ("lines of tests", sum(count_lines(path) for path in files if is_test(path))),
        ],
    )


def list_files() -> list[Path]:
    """The files under version control that exist, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [path for path in map(Path, listed.splitlines()) if (ROOT / path).is_file()]


def is_product(path: Path) -> bool:
    return path.suffix == ".py" and path.parts[0] in PACKAGES and "migrations" not in path.parts


def is_migration(path: Path) -> bool:
    return "migrations" in path.parts and path.suffix == ".py" and path.stem != "__init__"


def is_test(path: Path) -> bool:
    return path.suffix == ".py" and path.parts[0] == "tests"


def count_lines(path: Path) -> int:
    return len((ROOT / path).read_text().splitlines())


def count_lines_by_folder(paths: Iterable[Path], *, depth: int) -> list[tuple[str, int]]:
    lines: Counter[str] = Counter()
    for path in paths:
        lines["/".join(path.parts[:-1][:depth])] += count_lines(path)
    return [*lines.most_common(), ("total", lines.total())]


def count_lines_with_any(path: Path) -> int:
    tree = ast.parse((ROOT / path).read_text())
    return len(
        {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"}
    )


def print_table(title: str, rows: Iterable[tuple[str, int]]) -> None:
    print(f"\n{title}")  # noqa: T201
    for name, number in rows:
        print(f"  {number:>7,}  {name}")  # noqa: T201


if __name__ == "__main__":
    main()
