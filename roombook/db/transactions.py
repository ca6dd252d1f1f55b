"""Transactions that are retried when the database asks for it."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, transaction

P = ParamSpec("P")
R = TypeVar("R")

MAX_ATTEMPTS = 4
# serialization_failure and deadlock_detected: the transaction succeeds if it is run again.
# Not 55P03, lock_not_available: it comes after four seconds of waiting (`lock_timeout`), so four
# attempts would block a customer and a worker for sixteen seconds. The customer has to retry.
RETRYABLE_CODES = {"40001", "40P01"}


class RetryTransaction(OperationalError):
    """Raised where the whole transaction has to be run again, and will then succeed."""


def in_transaction(function: Callable[P, R]) -> Callable[P, R]:
    """Runs the function in a transaction, and runs it again after a deadlock or a lost race.

    The function must be safe to run again from its start: no calls to a gateway, no e-mails, no
    state outside the database. Inside an outer transaction it joins that one, which then retries.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                with transaction.atomic():
                    return function(*args, **kwargs)
            except OperationalError as error:
                may_retry = attempt < MAX_ATTEMPTS and not connection.in_atomic_block
                if not (may_retry and is_retryable(error)):
                    raise
        raise AssertionError("unreachable")

    return wrapper


def lock_by_name(name: str) -> None:
    """Let transactions that lock the same name take turns, until this transaction ends.

    On SQLite, there is only one writer anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])


def is_retryable(error: OperationalError) -> bool:
    """Whether the same transaction can succeed when it is run again."""
    return (
        isinstance(error, RetryTransaction)
        or getattr(error.__cause__, "pgcode", None) in RETRYABLE_CODES
    )
