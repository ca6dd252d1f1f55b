"""Choose the mutants: `python -m tests.mutants.sample`, in the environment of cosmic-ray.

Each position in the body of a function gives at most one mutant. The choice depends on nothing but
the seed and the file itself, so that a change of one file leaves the mutants of the others.
"""

import difflib
import inspect
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutants import ROOT, TARGETS

SEED = 23
SIZE = 640
# They change what is not the body of a function, or compare equal constants by identity.
LEFT_OUT = ("RemoveDecorator", "Variable", "_Eq_Is", "_NotEq_IsNot")


def main() -> None:
    positions: dict[tuple[Any, ...], list[tuple[str, Path, str, int]]] = {}
    for path in TARGETS:
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in operator_names():
            operator = get_operator(name)
            if operator.arguments() or any(each in name for each in LEFT_OUT):
                continue
            found = [at for node in nodes for at in operator().mutation_positions(node)]
            for occurrence, (start, end) in enumerate(found):
                words = f"{SEED} {path.relative_to(ROOT)} {name} {occurrence}"
                rank = sha256(words.encode()).hexdigest()
                positions.setdefault((path, start, end), []).append((rank, path, name, occurrence))
    # The position decides the order, so that one with many operators is no likelier than another.
    firsts = [min(each) for each in positions.values()]
    firsts.sort(key=lambda first: sha256(first[0].encode()).hexdigest())
    mutants: dict[str, dict[str, Any]] = {}
    for _, path, name, occurrence in firsts:
        if len(mutants) < SIZE and (mutant := make_mutant(path, name, occurrence)):
            mutants.setdefault(mutant["key"], mutant)
    print(json.dumps(sorted(mutants.values(), key=lambda each: (each["file"], each["line"]))))


def make_mutant(path: Path, name: str, occurrence: int) -> dict[str, Any] | None:
    before = path.read_text()
    after = mutate_code(before, get_operator(name)(), occurrence)
    try:
        old, new = (dict(list_functions(compile(text, path, "exec"))) for text in (before, after))
    except SyntaxError:
        return None
    changed = [name for name, code in new.items() if old.get(name) != code]
    if (
        not changed
        or {*old} != {*new}
        or any(old[name].co_kwonlyargcount != new[name].co_kwonlyargcount for name in changed)
    ):
        return None  # also the `*` or `/` of a signature
    diff = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    removed, added = ([each[2:] for each in diff if each.startswith(sign)] for sign in "-+")
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    line = next(number for number, (old, new) in enumerate(pairs, 1) if old != new)
    file = str(path.relative_to(ROOT))
    words = " ".join(each.strip() for each in [*removed, "->", *added])
    return {
        "key": f"{file} {changed[0][0]}: {words}",
        "file": file,
        "line": line,
        "removed": removed,
        "added": added,
        "source": after,
    }


def list_functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The outermost functions of a module, by name and line, and those of its classes."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_flags & inspect.CO_OPTIMIZED:
                yield (const.co_qualname, const.co_firstlineno), without_columns(const)
            else:
                yield from list_functions(const)


def without_columns(code: CodeType) -> CodeType:
    """The code without the positions in its lines, which also change with an annotation."""
    consts = [without_columns(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_linetable=b"", co_consts=tuple(consts))


if __name__ == "__main__":
    main()
