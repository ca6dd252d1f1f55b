"""What a customer has to do at the bank, so that the payment of a checkout can go on (B21.3)."""

import datetime as dt
from dataclasses import dataclass, field

from accounts.models import User
from payments import gateways, lifecycle
from payments.models import Payment
from reservations.booking.claims import get_own_reservation
from reservations.booking.payment_recovery import finish_payment
from reservations.models.status import Status


@dataclass(frozen=True, slots=True)
class PaymentAction:
    """How to confirm a payment: by the gateway's SDK, or on the page of the bank at `url`.

    The secrets come from the gateway for each response, and are stored nowhere.
    """

    gateway: str
    publishable_key: str
    client_secret: str = field(repr=False)
    url: str = field(repr=False)
    expires_at: dt.datetime


def get_payment_action(
    reservation_id: int, *, user: User, now: dt.datetime
) -> tuple[str, PaymentAction | None]:
    """Return the status of the user's reservation, and what the customer has to do, if anything.

    A payment that the customer has confirmed or refused, or not confirmed in time, is resolved.

    Raises NotFound, or GatewayUnavailable if the gateway does not answer.
    """
    reservation = get_own_reservation(reservation_id, user)
    # Also of a change of the booking (B27). Nobody pays for what has ended.
    is_open = reservation.status in {Status.PROCESSING, Status.CONFIRMED}
    waiting = Payment.objects.waiting().filter(reservation=reservation.pk)
    payment = waiting.first() if is_open else None
    if payment is None or payment.action_until is None:
        return reservation.status, None
    result = lifecycle.fetch_gateway_status(payment, now=now)
    finish_payment(payment, result, now=now)
    if result.action is None:
        return get_own_reservation(reservation_id, user).status, None
    return reservation.status, PaymentAction(
        gateway=payment.gateway,
        publishable_key=gateways.get_gateway(payment.gateway).publishable_key,
        client_secret=result.action.client_secret,
        url=result.action.url,
        expires_at=payment.action_until,
    )
