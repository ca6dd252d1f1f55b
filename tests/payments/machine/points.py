"""Places in the code at which a worker can die, be overtaken, or get no answer.

They are before and after each call of the gateway and each commit. Nothing else can be seen from
outside of the process, so dying anywhere else is the same as dying at the next or previous place.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.transaction import Atomic

from payments.gateways.base import GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway

GATEWAY_METHODS = (
    *("store_card", "delete_card", "check_card", "create_setup", "find_setup", "cancel_setup"),
    *("authorize", "find_payment", "void", "capture", "refund", "list_refunds"),
)


class WorkerDied(BaseException):
    """The worker was killed. No code of the product handles this."""


@dataclass(frozen=True)
class Fault:
    """What happens at a place: the number of those at which it can happen, since the call began.

    `kind` is "dies", "silent" (the gateway does not answer) or "overtaken": then `meanwhile` runs,
    as another worker would, before the call continues.
    """

    kind: str
    place: int
    meanwhile: str = ""


@dataclass
class Places:
    """Passes the places of one worker at a time."""

    fault: Fault | None = None
    overtake: Callable[[str], None] = lambda _: None
    passed: int = 0
    is_dead: bool = False
    deaths: int = 0
    is_in_gateway: bool = False
    # The number of transactions around the example, which are not the worker's.
    outer: int = 0

    @contextmanager
    def worker(self, fault: Fault | None, overtake: Callable[[str], None]) -> Iterator[None]:
        """Run a worker with a fault. The block ends early, without an error, if it dies."""
        outside = self.fault, self.overtake, self.passed
        self.fault, self.overtake, self.passed = fault, overtake, 0
        try:
            yield
        except WorkerDied:
            self.is_dead = False
        finally:
            self.fault, self.overtake, self.passed = outside

    def pass_by(self, *, is_gateway: bool = False) -> None:
        if self.is_dead:
            raise WorkerDied
        fault = self.fault
        is_open = len(connection.atomic_blocks) > self.outer
        if (
            fault is None
            or (fault.kind == "silent" and not is_gateway)
            or (fault.kind == "overtaken" and is_open)
        ):
            return
        self.passed += 1
        if self.passed != fault.place:
            return
        if fault.kind == "dies":
            self.is_dead = True
            self.deaths += 1
            raise WorkerDied
        if fault.kind == "silent":
            raise GatewayUnavailable
        is_in_gateway, self.is_in_gateway = self.is_in_gateway, False
        with self.worker(None, self.overtake):
            self.overtake(fault.meanwhile)
        self.is_in_gateway = is_in_gateway


def instrument(
    method: Callable[..., Any], places: Places, *, is_sandbox: bool
) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places.pass_by(is_gateway=True)
        # The sandbox commits on the gateway's side, the adapters of others on ours.
        places.is_in_gateway = is_sandbox
        try:
            result = method(*args, **kwargs)
        finally:
            places.is_in_gateway = False
        places.pass_by(is_gateway=True)
        return result

    return wrapper


@contextmanager
def instrumented(gateway: type, places: Places) -> Iterator[None]:
    """Let every call of this gateway, and every commit outside of it, pass a place."""
    enter, leave = Atomic.__enter__, Atomic.__exit__

    def enter_block(self: Atomic) -> None:
        if len(connection.atomic_blocks) == places.outer:
            # It would be a transaction of its own, which can be rolled back.
            self.savepoint = True
        enter(self)

    def exit_block(self: Atomic, kind: Any, error: Any, traceback: Any) -> None:
        is_outermost = len(connection.atomic_blocks) == places.outer + 1
        if kind is not None or places.is_in_gateway or not is_outermost:
            return leave(self, kind, error, traceback)
        try:
            places.pass_by()
        except WorkerDied as died:
            leave(self, WorkerDied, died, died.__traceback__)
            raise
        leave(self, None, None, None)
        places.pass_by()
        return None

    is_sandbox = gateway is SandboxGateway
    methods: dict[str, Any] = {
        name: instrument(getattr(gateway, name), places, is_sandbox=is_sandbox)
        for name in GATEWAY_METHODS
    }
    with (
        patch.multiple(gateway, **methods),
        patch.multiple(Atomic, __enter__=enter_block, __exit__=exit_block),
    ):
        yield
