"""Runs a change of a booking in a transaction, and settles afterwards what became due."""

import datetime as dt
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Payment
from reservations.booking.charging import settle, settle_payment
from roombook.db.transactions import in_transaction
from roombook.errors import ReservationNotOpen, ServiceUnavailable

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)


class CaptureDue(ServiceUnavailable):
    """Raised by a change of a booking that is possible once its payments are captured."""

    default_message = "The payment is not finished yet. Nothing was changed. Please try again."

    def __init__(self, payments: Sequence[Payment]) -> None:
        super().__init__()
        self.payments = payments


class CaptureRefused(ReservationNotOpen):
    """The gateway will never capture the authorized amount. Nothing was changed."""

    default_message = (
        "The gateway refuses to charge the authorized amount, so it cannot be refunded in part."
        " Nothing was changed."
    )


def fulfils_obligations(
    change: Callable[P, tuple[ResultT, Iterable[Payment]]],
) -> Callable[P, ResultT]:
    """Run the function in a transaction, and execute afterwards what became due for the payments.

    The function returns its result and payments of the reservation. It raises CaptureDue, after all
    its other checks, if it needs captured payments: then these are captured, and the function runs
    again. So a change that is refused never changes a payment.

    Raises CaptureRefused if the gateway refuses a capture, and CaptureDue if it does not answer.
    """

    @functools.wraps(change)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        now = kwargs["now"]
        assert isinstance(now, dt.datetime)
        try:
            result, payments = commit_change(change, *args, **kwargs)
        except CaptureDue as error:
            _capture_all(error.payments, now=now)
            result, payments = commit_change(change, *args, **kwargs)
        for payment in payments:
            settle(payment.reservation, [payment], now=now)
        return result

    return wrapper


@in_transaction
def commit_change(change: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
    return change(*args, **kwargs)


def _capture_all(payments: Sequence[Payment], *, now: dt.datetime) -> None:
    """Capture all that can be captured, and raise CaptureRefused afterwards if one was refused."""
    refusal = None
    for payment in payments:
        try:
            _capture(payment, now=now)
        except CaptureRefused as error:
            refusal = error
    if refusal is not None:
        raise refusal


def _capture(payment: Payment, *, now: dt.datetime) -> None:
    """Capture the payment of a booking. If the gateway does not answer, the capture stays due."""
    try:
        settle_payment(payment, now=now)
    except GatewayUnavailable:
        logger.warning("Payment %s: the gateway does not answer.", payment.key)
    except GatewayRefused as error:
        logger.exception("Payment %s cannot be captured.", payment.key)
        raise CaptureRefused from error
    except InvalidPaymentTransition:
        logger.exception("Payment %s cannot be captured yet.", payment.key)
