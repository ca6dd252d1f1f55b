"""Corruptions of the data by SQL are refused by the database, or named by verify_integrity.

corruptions.txt lists them: each stored copy of a fact, each status with its times, and each total
with its parts.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import time_machine
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from reservations.booking import integrity
from tests.factories_reservations import NOW
from tests.reservations.whole_business import WholeBusiness

TABLE = Path(__file__).with_name("corruptions.txt")
TABLES = {model._meta.model_name: model._meta.db_table for model in apps.get_models()}
# Of all corruptions, so many are refused or named.
LEAST_FOUND = 110 / 131


@dataclass(frozen=True)
class Corruption:
    name: str
    # "refused", "missed: the reason", or words of a finding.
    outcome: str
    statements: tuple[str, ...]


def read_corruptions() -> Iterator[Corruption]:
    for block in re.split(r"\n(?=\S)", TABLE.read_text()):
        title, *statements = block.splitlines()
        if " -> " in title and not title.startswith("#"):
            name, outcome = title.split(" -> ")
            yield Corruption(name, outcome, tuple(line for line in statements if line.strip()))


def corrupt(statements, ids):
    """Change the data by SQL, and let the database check all of its constraints."""
    # PostgreSQL alters no table while constraints are still to be checked.
    connection.check_constraints()
    with connection.cursor() as cursor:
        for text in statements:
            sql = re.sub(
                r"\b(UPDATE|FROM|INTO) (\w+)",
                lambda found: f"{found[1]} {TABLES.get(found[2], found[2])}",
                text.format(**ids),
            )
            cursor.execute(sql)
    connection.check_constraints()


def find_problems(checks=()):
    return [str(each) for each in integrity.find_problems(now=NOW, checks=checks)]


def get_name(check):
    return check.__name__.replace("_", " ")


def run(corruption, ids, checks):
    """Return what becomes of it, and undo it."""
    try:
        with transaction.atomic():
            corrupt(corruption.statements, ids)
            found = find_problems(checks)
            transaction.set_rollback(True)
    except IntegrityError:
        return ["refused"]
    return found


@pytest.mark.django_db
def test_corruptions_by_sql_are_refused_or_named_with_their_row(capsys):
    with time_machine.travel(NOW, tick=False):
        ids = WholeBusiness().get_ids()
    corruptions = list(read_corruptions())
    assert find_problems(integrity.CHECKS) == []
    counts, wrong = Counter(), []
    for each in corruptions:
        expected = each.outcome.format(**ids)
        # Only the check that has to find it, because all of them take a while.
        named = [check for check in integrity.CHECKS if get_name(check) == expected.split(":")[0]]
        found = run(each, ids, named or integrity.CHECKS)
        is_missed = expected.startswith("missed: ")
        counts["refused" if found == ["refused"] else "named" if found else "missed"] += 1
        if not any(expected in line for line in found) if not is_missed else found:
            wrong.append(f"{each.name}: {found or 'missed'}, and not {expected}")
    with capsys.disabled():
        numbers = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
        print(f"\n{len(corruptions)} corruptions: {numbers}")  # noqa: T201
    assert not wrong, "\n".join(wrong)
    assert len(corruptions) >= 131
    assert counts["missed"] <= len(corruptions) * (1 - LEAST_FOUND)
