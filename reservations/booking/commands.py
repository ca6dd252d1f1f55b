"""Commands change a reservation. Their previews run the same code, and change nothing.

A command is a function of an Act, a reservation's id and more. It runs in one transaction, which is
retried after a lost race. It calls no gateway: what became due there is done after the commit. It
returns its result, and why that cannot be committed, if there is a reason:

* `Unsettled`, after all its other checks: these payments have to be settled first. The command runs
  once they are. So a change that is refused changes no payment.
* `Refused`: the result shows what is wrong.

Every problem is a DomainError. For customers it is the answer, and pages of staff show its texts.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from django.db import transaction

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Payment, PaymentState
from reservations.booking import charging
from reservations.notifications import emails
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen, ServiceUnavailable

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

PAYMENT_UNDER_WAY = "A payment is under way. Please try again in a minute."
NOT_CAPTURED = "The payment is not finished yet. Nothing was changed. Please try again."
CAPTURE_REFUSED = (
    "The gateway refuses to charge the authorized amount, so it cannot be refunded in part."
    " Nothing was changed."
)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Payments that have to be captured, or called off, before the change is possible."""

    payments: Sequence[Payment]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the result is not what becomes of the reservation."""

    message: str


Obstacle = Unsettled | Refused | None


@dataclass(frozen=True, slots=True)
class Preview(Generic[ResultT]):
    """What a command would do: its result, and the last e-mail that it would send, if any.

    `problem` says why it is refused; it is empty if it is not.
    """

    result: ResultT
    email: OutboxMessage | None = None
    problem: str = ""


Body = Callable[Concatenate[Act, int, P], tuple[ResultT, Obstacle]]


class Command(Generic[P, ResultT]):
    """A function that changes a reservation, and its preview.

    `before` is what it asks the gateway for first; a preview does not, and assumes the answer that
    is hoped for. `without_capture` are the arguments with which it is possible even if the gateway
    refuses a capture.
    """

    def __init__(
        self,
        body: Body[P, ResultT],
        before: Callable[[Act, int], None] | None = None,
        without_capture: Mapping[str, object] | None = None,
    ) -> None:
        functools.update_wrapper(self, body)
        self.body, self.before, self.without_capture = body, before, without_capture

    def __call__(
        self, act: Act, reservation_id: int, /, *args: P.args, **kwargs: P.kwargs
    ) -> ResultT:
        """Do it. Raises DomainError: nothing was changed."""
        if self.before is not None:
            self.before(act, reservation_id)
        run: Callable[..., tuple[ResultT, Obstacle]] = functools.partial(
            self._commit, act, reservation_id, *args, **kwargs
        )
        result, obstacle = run()
        if isinstance(obstacle, Unsettled):
            is_captured = settle_first(obstacle.payments, act)
            if not is_captured and self.without_capture is None:
                raise ReservationNotOpen(CAPTURE_REFUSED)
            result, obstacle = run() if is_captured else run(**self.without_capture or {})
        if isinstance(obstacle, Refused):
            raise ReservationNotOpen(obstacle.message)
        if isinstance(obstacle, Unsettled):
            raise ServiceUnavailable(NOT_CAPTURED)
        charging.settle(reservation_id, now=act.now)
        return result

    @in_transaction
    def _commit(
        self, act: Act, reservation_id: int, *args: Any, **kwargs: Any
    ) -> tuple[ResultT, Obstacle]:
        result, obstacle = self.body(act, reservation_id, *args, **kwargs)
        if isinstance(obstacle, Unsettled | Refused):
            transaction.set_rollback(True)
        return result, obstacle

    @in_transaction
    def preview(
        self, act: Act, reservation_id: int, /, *args: P.args, **kwargs: P.kwargs
    ) -> Preview[ResultT]:
        """Return what it would do now. Raises the same errors, except those of the gateway."""
        former = emails.get_last_email(reservation_id)
        result, obstacle = self.body(act, reservation_id, *args, **kwargs)
        email = emails.get_last_email(reservation_id)
        transaction.set_rollback(True)
        problem = obstacle.message if isinstance(obstacle, Refused) else ""
        return Preview(result, None if email == former else email, problem)


command = Command


def command_after(
    before: Callable[[Act, int], None], *, without_capture: Mapping[str, object] | None = None
) -> Callable[[Body[P, ResultT]], Command[P, ResultT]]:
    """Make a command of a function that comes after a call of the gateway. See `Command`."""
    return lambda body: Command(body, before, without_capture)


def settle_first(payments: Sequence[Payment], act: Act) -> bool:
    """Capture payments; return False if the gateway will never capture one of them.

    Raises DomainError if it does not answer, or if one of them still waits for its customer.
    """
    is_captured = True
    for payment in payments:
        if payment.state == PaymentState.STARTED:
            raise ReservationNotOpen(PAYMENT_UNDER_WAY)
        try:
            charging.settle_payment(payment, now=act.now)
        except GatewayRefused:
            logger.exception("Payment %s cannot be captured.", payment.key)
            is_captured = False
        except (GatewayUnavailable, InvalidPaymentTransition) as error:
            logger.exception("Payment %s cannot be captured yet.", payment.key)
            raise ServiceUnavailable(NOT_CAPTURED) from error
    return is_captured
