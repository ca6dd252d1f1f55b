"""Transactions that lose a race are retried; other errors are raised immediately."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from accounts.models import User
from roombook.db import transactions
from roombook.db.transactions import in_transaction
from tests.factories_people import UserFactory


class Lost(Exception):
    def __init__(self, pgcode):
        self.pgcode = pgcode


def lose(pgcode):
    """The error of a transaction that the database has ended with this code."""
    error = OperationalError("lost")
    error.__cause__ = Lost(pgcode)
    return error


def fails(error, times):
    """Return a function that raises the error the given number of times, and its calls."""
    calls = []

    @in_transaction
    def work():
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "done"

    return work, calls


def run_deadlocking_transactions():
    """Run two transactions that lock two rows in opposite order, and return their results."""
    rows = [UserFactory().pk, UserFactory().pk]
    gate = Barrier(2)
    met = set()

    @in_transaction
    def lock_both(first, second):
        User.objects.select_for_update().get(pk=first)
        # Wait in the first attempt only: a retry runs alone.
        if first not in met:
            met.add(first)
            gate.wait(timeout=30)
        User.objects.select_for_update().get(pk=second)
        return "done"

    def run(pair):
        try:
            return lock_both(*pair)
        except OperationalError as error:
            return error.__cause__.pgcode
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        return sorted(pool.map(run, [rows, rows[::-1]]))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_deadlocked_transactions_both_succeed():
    assert run_deadlocking_transactions() == ["done", "done"]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_deadlock_without_retry_fails_one_transaction(monkeypatch):
    monkeypatch.setattr(transactions, "MAX_ATTEMPTS", 1)

    assert run_deadlocking_transactions() == ["40P01", "done"]


@pytest.mark.parametrize(
    ("error", "times", "attempts"),
    [
        # A serialization failure or a deadlock is tried again, three times.
        (lose("40001"), 3, 4),
        (lose("40P01"), 3, 4),
        (lose("40P01"), 99, 4),
        # Nothing else is.
        *((lose(pgcode), 99, 1) for pgcode in ("55P03", "57014", None)),
        *((error, 99, 1) for error in (IntegrityError(), ValueError())),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_transaction_that_lost_a_race_is_retried(error, times, attempts):
    work, calls = fails(error, times)

    with nullcontext() if times < attempts else pytest.raises(type(error)):
        assert work() == "done"
    assert len(calls) == attempts


@pytest.mark.django_db(transaction=True)
def test_nested_transaction_failure_retries_the_outer_one():
    work, calls = fails(lose("40P01"), 1)

    with pytest.raises(OperationalError), transaction.atomic():
        work()
    assert len(calls) == 1

    work, calls = fails(lose("40P01"), 1)
    outer = []

    @in_transaction
    def whole():
        outer.append(1)
        return work()

    assert (whole(), len(outer), len(calls)) == ("done", 2, 2)
