"""Runs the sandbox's operations, with the faults that tests switch on for them."""

import functools
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db.models import F, Q, QuerySet

from payments.gateways.base import GatewayUnavailable, require_no_open_transaction
from payments.gateways.sandbox_models import FaultKind, SandboxFault
from roombook.db.compiled_queries import compiled_query, text_param
from roombook.db.transactions import in_transaction

P = ParamSpec("P")
R = TypeVar("R")


def operation(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a method in a transaction of its own, with the faults that are switched on for it."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            require_no_open_transaction()
            fault = take_fault(name)
            if fault:
                time.sleep(fault.seconds)
                if fault.kind in {FaultKind.TIMEOUT_BEFORE, FaultKind.ERROR}:
                    raise GatewayUnavailable
            result = in_transaction(method)(*args, **kwargs)
            if fault and fault.kind in {FaultKind.TIMEOUT_AFTER, FaultKind.RESET}:
                raise GatewayUnavailable
            return result

        return run

    return decorate


def take_fault(operation: str) -> SandboxFault | None:
    """The fault that is switched on for this operation, if any. Uses it up once."""
    for fault in active_faults(operation=operation):
        if fault.times is None:
            return fault
        if SandboxFault.objects.filter(pk=fault.pk, times__gt=0).update(times=F("times") - 1):
            return fault
    return None


@compiled_query(keep_plan=True)
def active_faults() -> QuerySet[SandboxFault]:
    faults = SandboxFault.objects.filter(Q(times__isnull=True) | Q(times__gt=0))
    return faults.filter(Q(operation=text_param("operation")) | Q(operation="*")).order_by("pk")
