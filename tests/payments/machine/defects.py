"""Planted defects: each breaks one rule of docs/checkout.md, and the machine has to find it."""

import dataclasses
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, TypeAlias
from unittest.mock import patch

from django.db.models import F

from payments import gateway_events, gateways, lifecycle, refunds
from payments.gateways.base import GatewayPayment, GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState
from reservations.booking import authorization, payment_recovery
from reservations.models import PromoCode
from reservations.models.status import Status
from reservations.pricing import bill

Defect: TypeAlias = Callable[[], AbstractContextManager[Any]]
DEFECTS: dict[str, Defect] = {}


def plant(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace a function while the defect is planted. The replacement gets the original first."""

    def decorate(replacement: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(owner, name)

        def broken(*args: Any, **kwargs: Any) -> Any:
            return replacement(original, *args, **kwargs)

        DEFECTS[replacement.__name__] = lambda: patch.object(owner, name, broken)
        return replacement

    return decorate


def plant_value(name: str, owner: Any, attribute: str, value: Any) -> None:
    DEFECTS[name] = lambda: patch.object(owner, attribute, value)


def forge(payment: Payment, state: str) -> GatewayPayment:
    """An answer that the gateway has not given."""
    return GatewayPayment(state=state, reference="forged", amount=payment.amount)


# --- Money before the booking, or without one -----------------------------------------------------


@plant(lifecycle, "authorize_payment")
def capture_before_the_booking_is_committed(original, payment, *args, **kwargs):
    result = original(payment, *args, **kwargs)
    if result.state == "authorized":
        result = gateways.get_gateway(payment.gateway).capture(payment.key)
    return result


@plant(lifecycle, "authorize_payment")
def authorize_under_a_new_key(original, payment, *args, **kwargs):
    payment.key = uuid.uuid4()
    return original(payment, *args, **kwargs)


@plant(lifecycle, "authorize_payment")
def take_a_missing_answer_for_a_decline(original, payment, *args, **kwargs):
    try:
        return original(payment, *args, **kwargs)
    except GatewayUnavailable:
        return forge(payment, "declined")


@plant(lifecycle, "authorize_payment")
def take_a_missing_answer_for_an_authorization(original, payment, *args, **kwargs):
    try:
        return original(payment, *args, **kwargs)
    except GatewayUnavailable:
        return forge(payment, "authorized")


plant_value(
    "capture_for_every_status",
    *(payment_recovery, "CAPTURE_DUE_STATUSES", frozenset(Status)),
)
plant_value("capture_nothing", payment_recovery, "CAPTURE_DUE_STATUSES", frozenset())
plant_value("void_nothing", payment_recovery, "VOID_DUE_STATUSES", frozenset())


@plant(lifecycle, "capture_payment")
def take_a_missing_capture_for_done(original, payment, *, now):
    try:
        return original(payment, now=now)
    except GatewayUnavailable:
        return lifecycle.store_gateway_status(payment, forge(payment, "captured"), now=now)


# --- Waiting for the customer ---------------------------------------------------------------------


@plant(lifecycle, "fetch_gateway_status")
def release_before_the_void(original, payment, **kwargs):
    result = gateways.get_gateway(payment.gateway).find_payment(payment.key)
    now = kwargs["now"]
    if result is None or (
        result.state == "action_required" and lifecycle.get_action_deadline(payment) <= now
    ):
        # The void would follow, if the process lived so long.
        return forge(payment, "voided")
    return result


@plant(lifecycle, "_is_to_be_voided")
def wait_for_ever(original, payment, result, **kwargs):
    return original(payment, result, **kwargs) if result is None else False


@plant(gateway_events, "refresh")
def trust_the_webhook_without_asking(original, payment, *, now):
    if payment.state != PaymentState.STARTED or payment.action_until is None:
        return original(payment, now=now)
    payment_recovery.finish_checkout(payment, forge(payment, "authorized"), now=now)
    return payment


@plant(lifecycle, "_is_to_be_voided")
def void_what_the_customer_has_confirmed(original, payment, result, **kwargs):
    return result is None or result.state in {"action_required", "authorized"}


@plant(SandboxGateway, "find_payment")
def take_a_refused_confirmation_for_given(original, self, key):
    result = original(self, key)
    if result is not None and result.state == "declined":
        return dataclasses.replace(result, state="authorized")
    return result


@plant(authorization, "apply_authorization")
def book_without_waiting_for_the_customer(original, payment, result, **kwargs):
    if result.state == "action_required":
        result = dataclasses.replace(result, state="authorized")
    return original(payment, result, **kwargs)


@plant(authorization, "apply_authorization")
def keep_the_room_after_a_decline(original, payment, result, **kwargs):
    if result.state != "declined":
        return original(payment, result, **kwargs)
    return payment.reservation, lifecycle.record_gateway_result(payment, result, now=kwargs["now"])


@plant(SandboxGateway, "void")
def void_no_unknown_key(original, self, key):
    if SandboxPayment.objects.filter(key=key).exists():
        return original(self, key)
    return GatewayPayment(state="voided", reference="", amount=Decimal(0))


# --- Promo codes, included hours, refunds ---------------------------------------------------------


@plant(bill, "return_benefits")
def keep_promo_code_and_hours(original, reservation, *, now):
    pass


@plant(bill, "consume_benefits")
def use_promo_code_and_hours_for_free(original, reservation, **kwargs):
    pass


@plant(bill, "consume_benefits")
def count_the_promo_code_twice(original, reservation, **kwargs):
    original(reservation, **kwargs)
    PromoCode.objects.filter(pk=reservation.promo_code_id).update(max_uses=None)
    PromoCode.objects.filter(pk=reservation.promo_code_id).update(uses=F("uses") + 1)


@plant(refunds, "create_refund")
def cancel_without_a_refund(original, payment, **kwargs):
    pass
