"""How the sandbox runs an operation: as a server of its own would."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from payments.gateways.base import require_no_open_transaction
from roombook.db.transactions import in_transaction

P = ParamSpec("P")
R = TypeVar("R")


def operation(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method in a transaction of its own, never in one of the caller."""

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        require_no_open_transaction()
        return in_transaction(method)(*args, **kwargs)

    return run
