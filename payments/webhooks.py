"""The webhook that Stripe calls: late results, refunds, disputes.

Stripe repeats an event for three days unless the answer is 2xx. Everything here may be repeated.
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

from payments import gateway_events, setups
from payments.gateways import declines
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Payment, PaymentSetup, PaymentState
from payments.unknown_payments import WITHOUT_MONEY, remember_unknown_payment

if TYPE_CHECKING:
    from payments.gateways.stripe.events import StripeEvent

logger = logging.getLogger(__name__)


class PaymentNotResolved(Exception):
    """The outcome of the payment is unknown. The event can be processed when it is repeated."""


@csrf_exempt
@require_POST
def receive_stripe_event(request: HttpRequest) -> HttpResponse:
    """Process one event: 200 if done, 400 if not signed by Stripe, 503 to have it repeated."""
    if not settings.STRIPE_WEBHOOK_SECRET:
        raise Http404
    # Imported here, so that Stripe's SDK is loaded only where it is used.
    from payments.gateways.stripe.events import InvalidSignature, parse_event

    try:
        event = parse_event(request.body, request.headers.get("Stripe-Signature"))
    except InvalidSignature:
        return text_response("This is not signed by Stripe.", 400)
    try:
        process_event(event, now=timezone.now())
    except (GatewayUnavailable, PaymentNotResolved, OperationalError, InterfaceError) as error:
        logger.warning("%s %s must be repeated: %r", event.type, event.reference, error)
        return text_response("Not now.", 503)
    except GatewayRefused as error:
        # A repeated event would be refused again. It is not marked as processed, so that staff
        # can resend it from Stripe's dashboard.
        logger.error("%s %s cannot be processed: %s", event.type, event.reference, error)
        return text_response("Ignored.", 200)
    return text_response("Noted.", 200)


def text_response(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain", status=status)


def process_event(event: "StripeEvent", *, now: datetime) -> None:
    """Run the handler of the event's type, once per event. Other types are ignored."""
    is_known = event.type in EVENT_HANDLERS or event.type in SETUP_EVENTS
    if not is_known or gateway_events.is_processed(event.reference):
        return
    if event.type in SETUP_EVENTS:
        handle_setup_change(event, now)
    elif payment := find_payment(event, now=now):
        EVENT_HANDLERS[event.type](event, payment, now)
    gateway_events.mark_processed(event.reference, event.type, now=now)


def find_payment(event: "StripeEvent", *, now: datetime) -> Payment | None:
    """The payment of the event, None if it is not ours: the account may sell other things."""
    from payments.gateways.stripe.intents import find_key, store_intent

    key = find_key(event.intent) or event.key
    if key is None or not event.intent:
        return None
    payment = Payment.objects.filter(key=key).first()
    if event.type in EVENTS_WITHOUT_MONEY:
        return payment
    # A restored backup may lack the intent, the payment, or both.
    store_intent(key, event.intent, is_live=event.is_live)
    if payment is None or payment.state in WITHOUT_MONEY:
        is_unresolved = remember_unknown_payment("stripe", key, event.intent, now=now)
        if payment is None and is_unresolved:
            logger.error("%s: %s is not in our database.", event.type, event.intent)
    return payment


def handle_payment_change(event: "StripeEvent", payment: Payment, now: datetime) -> None:
    gateway_events.refresh(payment, now=now)


def handle_refund_change(event: "StripeEvent", payment: Payment, now: datetime) -> None:
    require_resolved(gateway_events.refresh_with_refunds(payment, now=now))


def handle_dispute_change(event: "StripeEvent", payment: Payment, now: datetime) -> None:
    from payments.gateways.stripe.gateway import StripeGateway

    payment = require_resolved(gateway_events.refresh(payment, now=now))
    dispute = StripeGateway().dispute(event.object, is_live=event.is_live)
    gateway_events.record_dispute(payment, dispute, now=now)


def handle_setup_change(event: "StripeEvent", now: datetime) -> None:
    """Save the card of a setup that the app did not complete, and count refused cards."""
    if event.setup is None:
        return  # It is not ours: the account may sell other things.
    setup = PaymentSetup.objects.open().filter(key=event.setup).first()
    if setup is None:
        return
    found = setups.resolve_setup(setup, now=now)
    if event.type == SETUP_FAILED and found and found.state in {"open", "failed"}:
        message = found.message or declines.DECLINED
        setups.record_refusal(setup, event.attempt or event.reference, message, now=now)


def require_resolved(payment: Payment) -> Payment:
    """Return the payment. Raises PaymentNotResolved if its outcome is unknown to us."""
    if payment.state == PaymentState.STARTED:
        raise PaymentNotResolved
    return payment


EVENTS_WITHOUT_MONEY = {"payment_intent.payment_failed", "payment_intent.canceled"}

SETUP_FAILED = "setup_intent.setup_failed"
SETUP_EVENTS = {"setup_intent.succeeded", SETUP_FAILED, "checkout.session.completed"}

# The event types to select in Stripe's dashboard, with SETUP_EVENTS. deploy/README.md lists them
# too.
EVENT_HANDLERS: dict[str, Callable[["StripeEvent", Payment, datetime], None]] = {
    "payment_intent.amount_capturable_updated": handle_payment_change,
    "payment_intent.succeeded": handle_payment_change,
    "payment_intent.payment_failed": handle_payment_change,
    "payment_intent.canceled": handle_payment_change,
    "charge.refunded": handle_refund_change,
    "charge.refund.updated": handle_refund_change,
    "refund.created": handle_refund_change,
    "refund.updated": handle_refund_change,
    "refund.failed": handle_refund_change,
    "charge.dispute.created": handle_dispute_change,
    "charge.dispute.updated": handle_dispute_change,
    "charge.dispute.closed": handle_dispute_change,
    # The fee of a dispute can change after it is closed.
    "charge.dispute.funds_withdrawn": handle_dispute_change,
    "charge.dispute.funds_reinstated": handle_dispute_change,
}
