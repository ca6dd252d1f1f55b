"""Faults of the sandbox gateway that a test switches on: a fake around its operations.

They are files in the folder GATEWAY_FAULTS, so that they affect every process of a test, also the
services that it starts. One that affects three calls is three files: who deletes one has the fault.
"""

import functools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

from payments.gateways.base import GatewayUnavailable, require_no_open_transaction
from payments.gateways.sandbox import SandboxGateway

FOLDER = Path(
    os.environ.get("GATEWAY_FAULTS")
    or f"{os.environ['TEST_RUN_FOLDER']}/gateway-faults-{os.getpid()}"
)
# By operation, as tests name it: the methods of the gateway.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "authorize": ("authorize",),
    "lookup": ("find_payment", "list_refunds"),
    "void": ("void",),
    "capture": ("capture",),
    "refund": ("refund",),
    "fees": ("fetch_fees",),
    "list": ("list_payments", "list_recent_refunds"),
    "store": ("store_card",),
    "forget": ("delete_card", "delete_customer"),
    "check": ("check_card",),
    "create_setup": ("create_setup",),
    "find_setup": ("find_setup",),
    "cancel_setup": ("cancel_setup",),
}


class FaultKind(StrEnum):
    SLOW = "slow"  # answers after `seconds`
    TIMEOUT_BEFORE = "timeout_before"  # no answer, and nothing was done
    TIMEOUT_AFTER = "timeout_after"  # no answer, but it was done
    ERROR = "error"  # answers 500, nothing was done
    RESET = "reset"  # the connection breaks, but it was done


def add_fault(
    operation: str,
    kind: str,
    *,
    seconds: float = 0,
    times: int | None = None,
    folder: Path = FOLDER,
) -> Callable[[], None]:
    """Let the next calls of an operation fail, or of every one (`*`), until it is undone.

    None for `times`: all calls. Returns what undoes it.
    """
    folder.mkdir(exist_ok=True)
    mode = "always" if times is None else "once"
    name = "all" if operation == "*" else operation
    files = [
        folder / f"{time.monotonic_ns()} {name} {FaultKind(kind)} {seconds} {mode} {uuid4()}"
        for _ in range(1 if times is None else times)
    ]
    for file in files:
        file.touch()

    def undo() -> None:
        for file in files:
            file.unlink(missing_ok=True)

    return undo


def clear_faults() -> None:
    for name in find_faults():
        (FOLDER / name).unlink(missing_ok=True)


def find_faults(folder: Path = FOLDER) -> list[str]:
    """Return the faults that are switched on, the first one first."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 (it is called for every operation)
    except FileNotFoundError:
        return []


def take_fault(operation: str) -> tuple[str, float] | None:
    """Return the kind and the seconds of the fault that is due, and use it up once."""
    for file in find_faults():
        _, name, kind, seconds, mode, _ = file.split(" ")
        if name not in {operation, "all"}:
            continue
        if mode == "always":
            return kind, float(seconds)
        with suppress(FileNotFoundError):  # Another process was first.
            (FOLDER / file).unlink()
            return kind, float(seconds)
    return None


def install() -> None:
    """Let each operation of the sandbox look for its faults."""
    for operation, names in OPERATIONS.items():
        for name in names:
            setattr(SandboxGateway, name, _wrap(operation, getattr(SandboxGateway, name)))


def _wrap(operation: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        require_no_open_transaction()
        kind, seconds = take_fault(operation) or ("", 0)
        if seconds:
            time.sleep(seconds)
        if kind in {FaultKind.TIMEOUT_BEFORE, FaultKind.ERROR}:
            raise GatewayUnavailable
        result = method(*args, **kwargs)
        if kind in {FaultKind.TIMEOUT_AFTER, FaultKind.RESET}:
            raise GatewayUnavailable
        return result

    return run
