"""The one way to write more than a row: all or nothing, and again when the database says so."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, transaction

P = ParamSpec("P")
R = TypeVar("R")

MAX_ATTEMPTS = 4
# serialization_failure, deadlock_detected: PostgreSQL's own words for "run it again".
# Not 55P03, lock_not_available: it comes after four seconds of waiting (`lock_timeout`), and four
# tries of that would keep a customer and a worker for sixteen. They are told to try again instead.
RETRYABLE_CODES = {"40001", "40P01"}


class RetryTransaction(OperationalError):
    """What failed for a reason that is gone by now, and would do in a transaction of its own."""


def in_transaction(function: Callable[P, R]) -> Callable[P, R]:
    """Run the function in a transaction, and again when the database says that it only lost a race.

    The function must be safe to run again from its start: no gateway, no mail, no state outside
    the database. Inside an outer transaction it joins that one, and the outer one tries again.
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


def is_retryable(error: OperationalError) -> bool:
    """Whether the database only asked for another try."""
    return (
        isinstance(error, RetryTransaction)
        or getattr(error.__cause__, "pgcode", None) in RETRYABLE_CODES
    )
