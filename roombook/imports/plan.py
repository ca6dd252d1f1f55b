"""What would become of a file, row by row: what is checked, shown, confirmed and then written."""

import datetime as dt
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Origin:
    """Who imports which file when: what the history tells."""

    file: str
    at: dt.datetime
    actor: Any = None
    address: str | None = None
    request: Any = None


@dataclass(slots=True)
class Checked:
    """What would become of one row of the file."""

    NEW: ClassVar = "new"
    CHANGED: ClassVar = "changed"
    UNCHANGED: ClassVar = "unchanged"
    ERROR: ClassVar = "error"

    number: int
    kind: str = NEW
    # As it will be.
    instance: Any = None
    # The stored row as it was read.
    before: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    # Column -> what it says now, what it will say.
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Column, or nothing for the row as a whole, with what is wrong.
    errors: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def now(self, column: str) -> str:
        """What a cell of a new row will say."""
        return self.changes.get(column, ("", ""))[1]


@dataclass(slots=True)
class Plan:
    """A file checked as a whole."""

    columns: list[str]
    rows: list[Checked] = field(default_factory=list)
    # The ids of the stored rows by their keys, as far as the file speaks of them.
    known: dict[Any, list[int]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Checked]:
        return [row for row in self.rows if row.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys((Checked.NEW, Checked.CHANGED, Checked.UNCHANGED, Checked.ERROR), 0)
        for row in self.rows:
            counts[row.kind] += 1
        return counts

    @property
    def has_errors(self) -> bool:
        return any(row.kind == Checked.ERROR for row in self.rows)

    @property
    def changes_something(self) -> bool:
        return any(row.kind in (Checked.NEW, Checked.CHANGED) for row in self.rows)

    @property
    def digest(self) -> str:
        """The same for two checks that would write the same over the same."""
        found = hashlib.sha256()
        for row in self.rows:
            pk = row.instance.pk if row.instance is not None else None
            found.update(json.dumps([row.number, row.kind, pk, row.changes]).encode())
        return found.hexdigest()
