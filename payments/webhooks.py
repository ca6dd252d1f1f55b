"""The address where Stripe tells what happens without us: disputes, refunds, late results.

Every answer but 2xx makes Stripe tell it again, for three days. Everything here may be repeated.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from payments import gateway_events
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Payment, PaymentState

if TYPE_CHECKING:
    from payments.gateways.stripe.gateway import Event

logger = logging.getLogger(__name__)


class TooEarly(Exception):
    """The payment is not settled yet: the message is understood when it comes again."""


@csrf_exempt
@require_POST
def stripe(request: HttpRequest) -> HttpResponse:
    """Note one message: 200 when done, 400 unless Stripe signed it, 503 to hear it again."""
    if not settings.STRIPE_WEBHOOK_SECRET:
        raise Http404
    # Here, so that nobody loads Stripe's SDK who does not use it.
    from payments.gateways.stripe.gateway import Forged, read_event

    try:
        event = read_event(request.body, request.headers.get("Stripe-Signature"))
    except Forged:
        return answer("This is not signed by Stripe.", 400)
    try:
        take(event, now=timezone.now())
    except (GatewayUnavailable, TooEarly, OperationalError, InterfaceError) as error:
        logger.warning("%s %s has to come again: %r", event.type, event.reference, error)
        return answer("Not now.", 503)
    except GatewayRefused as error:
        # Told again, it would be refused again. Not marked as heard: staff may resend it by hand.
        logger.error("%s %s cannot be followed up: %s", event.type, event.reference, error)
        return answer("Ignored.", 200)
    return answer("Noted.", 200)


def answer(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain", status=status)


def take(event: "Event", *, now: datetime) -> None:
    """Do what a message asks for, once; messages that mean nothing to us are fine."""
    handle = HANDLERS.get(event.type)
    if handle is None or gateway_events.was_heard(event.reference):
        return
    payment = payment_of(event)
    if payment is not None:
        handle(event, payment, now)
    gateway_events.mark_heard(event.reference, event.type, now=now)


def payment_of(event: "Event") -> Payment | None:
    """Whose payment it is about; other things may be sold by the same account."""
    from payments.gateways.stripe.gateway import key_of

    key = key_of(event.intent)
    if key is None and event.key is not None:
        # It carries our mark: our database is older than it, or another one shares the account.
        logger.error("%s: %s is in no book of ours.", event.type, event.intent)
    return Payment.objects.filter(key=key).first() if key else None


def payment_changed(event: "Event", payment: Payment, now: datetime) -> None:
    gateway_events.look_again(payment, now=now)


def refunds_changed(event: "Event", payment: Payment, now: datetime) -> None:
    from payments.gateways.stripe.gateway import StripeGateway

    payment = settled(payment, now)
    gateway_events.record_refunds(payment, StripeGateway().refunds(payment.key), now=now)


def dispute_changed(event: "Event", payment: Payment, now: datetime) -> None:
    from payments.gateways.stripe.gateway import StripeGateway

    payment = settled(payment, now)
    dispute = StripeGateway().dispute(event.object, is_live=event.is_live)
    gateway_events.record_dispute(payment, dispute, now=now)


def settled(payment: Payment, now: datetime) -> Payment:
    """The payment as it is at Stripe. Raises TooEarly while it is in doubt with us."""
    payment = gateway_events.look_again(payment, now=now)
    if payment.state == PaymentState.STARTED:
        raise TooEarly
    return payment


# What Stripe has to be told to send here; deploy/README.md repeats it.
HANDLERS: dict[str, Callable[["Event", Payment, datetime], None]] = {
    "payment_intent.amount_capturable_updated": payment_changed,
    "payment_intent.succeeded": payment_changed,
    "payment_intent.payment_failed": payment_changed,
    "payment_intent.canceled": payment_changed,
    "charge.refunded": refunds_changed,
    "charge.refund.updated": refunds_changed,
    "refund.created": refunds_changed,
    "refund.updated": refunds_changed,
    "refund.failed": refunds_changed,
    "charge.dispute.created": dispute_changed,
    "charge.dispute.updated": dispute_changed,
    "charge.dispute.closed": dispute_changed,
}
