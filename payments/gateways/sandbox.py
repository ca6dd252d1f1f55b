"""The sandbox: a gateway that charges nobody, for development and tests.

It behaves like a real one: it has its own tables (sandbox_models.py), commits its changes itself,
and must not be called inside a transaction. It accepts only the test numbers that Stripe documents.
"""

import secrets
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from django.db.models import QuerySet

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.base import (
    GatewayAction,
    GatewayFees,
    GatewayPayment,
    GatewayRefund,
    GatewayRefused,
)
from payments.gateways.sandbox_cards import (
    DECLINE_MESSAGES,
    NEVER_CONFIRMED,
    OUTCOMES_AFTER_CONFIRMATION,
    SUCCEEDS,
    SandboxCardOperations,
    evaluate_card,
)
from payments.gateways.sandbox_models import SandboxPayment, SandboxRefund
from payments.gateways.sandbox_operations import operation
from payments.gateways.sandbox_setups import SandboxSetupOperations
from roombook.db.compiled_queries import compiled_query, uuid_param
from roombook.money import ZERO, round_amount


class SandboxGateway(SandboxCardOperations, SandboxSetupOperations):
    """Implements the Gateway protocol of gateways/base.py."""

    name: ClassVar[str] = "sandbox"
    is_live = False
    publishable_key = "pk_sandbox"

    @operation
    def authorize(
        self,
        *,
        key: UUID,
        amount: Decimal,
        currency: str,
        source: Card | str,
        description: str,
        on_session: bool = False,
    ) -> GatewayPayment:
        outcome, brand, last4 = evaluate_card(source)
        payment = SandboxPayment(
            key=key,
            amount=amount,
            currency=currency,
            brand=brand,
            last4=last4,
            description=description[:255],
        )
        if on_session and outcome in OUTCOMES_AFTER_CONFIRMATION:
            payment.state = "action_required"
            payment.outcome = OUTCOMES_AFTER_CONFIRMATION[outcome]
            payment.secret = secrets.token_urlsafe(32)
        else:
            apply_outcome(payment, outcome)
        # The unique key decides between concurrent calls: one creates the payment.
        SandboxPayment.objects.bulk_create([payment], ignore_conflicts=True)
        payment = locked_payment_by_key.first(key=key) or payment
        is_fence = payment.state == "voided" and not payment.currency
        if not is_fence and (payment.amount, payment.currency) != (amount, currency):
            raise GatewayRefused(f"The key {key} was used for another amount.")
        return to_gateway_payment(payment)

    @operation
    def find_payment(self, key: UUID) -> GatewayPayment | None:
        payment = SandboxPayment.objects.filter(key=key).first()
        return to_gateway_payment(payment) if payment else None

    @operation
    def void(self, key: UUID) -> GatewayPayment:
        payment, _ = SandboxPayment.objects.select_for_update().get_or_create(
            key=key, defaults={"state": "voided"}
        )
        if payment.state in {"authorized", "action_required"}:
            payment.state = "voided"
            payment.save(update_fields=["state"])
        return to_gateway_payment(payment)

    @operation
    def capture(self, key: UUID) -> GatewayPayment:
        payment = lock_payment(key)
        if payment.state == "authorized":
            payment.state = "captured"
            payment.captures += 1
            payment.save(update_fields=["state", "captures"])
        return to_gateway_payment(payment)

    @operation
    def refund(self, *, key: UUID, refund_key: UUID, amount: Decimal) -> None:
        payment = lock_payment(key)
        known = payment.refunds.filter(key=refund_key).first()
        if known:
            if known.amount != amount:
                raise GatewayRefused(f"The key {refund_key} was used for another amount.")
            return
        if payment.state != "captured":
            raise GatewayRefused(f"A payment that is {payment.state} cannot be refunded.")
        if amount <= 0 or payment.refunded + amount > payment.amount:
            raise GatewayRefused("No more can be refunded than was captured.")
        SandboxRefund.objects.create(key=refund_key, payment=payment, amount=amount)
        payment.refunded += amount
        if payment.refunded == payment.amount:
            payment.state = "refunded"
        payment.save(update_fields=["refunded", "state"])

    @operation
    def list_refunds(self, key: UUID) -> list[GatewayRefund]:
        rows = SandboxRefund.objects.filter(payment__key=key).order_by("pk")
        return [to_gateway_refund(row) for row in rows]

    @operation
    def fetch_fees(self, key: UUID) -> GatewayFees:
        charged = SandboxPayment.objects.filter(state__in=["captured", "refunded"])
        payment = charged.filter(key=key).first()
        if payment is None:
            return GatewayFees()
        return GatewayFees(
            calculate_fee(payment.amount, payment.currency),
            [(to_gateway_refund(refund), ZERO) for refund in payment.refunds.all()],
        )

    @operation
    def list_payments(self, since: datetime) -> Iterator[tuple[UUID, GatewayPayment]]:
        rows = SandboxPayment.objects.filter(
            created_at__gte=since,
            state__in=["action_required", "authorized", "captured", "refunded"],
        )
        return iter([(row.key, to_gateway_payment(row)) for row in rows.order_by("pk")])

    @operation
    def list_recent_refunds(self, since: datetime) -> list[tuple[UUID, GatewayRefund]]:
        rows = SandboxRefund.objects.filter(created_at__gte=since).select_related("payment")
        return [(row.payment.key, to_gateway_refund(row)) for row in rows.order_by("pk")]


@operation
def confirm_payment(secret: str) -> GatewayPayment:
    """The customer confirms the payment at the bank. Does nothing if it has ended."""
    payment = SandboxPayment.objects.select_for_update().get(secret=secret)
    if payment.state == "action_required" and payment.outcome != NEVER_CONFIRMED:
        apply_outcome(payment, payment.outcome)
        payment.save(update_fields=["state", "message"])
    return to_gateway_payment(payment)


@operation
def refuse_payment(secret: str) -> GatewayPayment:
    """The customer does not confirm the payment. Does nothing if it has ended."""
    payment = SandboxPayment.objects.select_for_update().get(secret=secret)
    if payment.state == "action_required":
        payment.state, payment.message = "declined", declines.NOT_CONFIRMED
        payment.save(update_fields=["state", "message"])
    return to_gateway_payment(payment)


def calculate_fee(amount: Decimal, currency: str) -> Decimal:
    """2.9 percent and 0.30, as gateways charge. They keep it if the payment is refunded."""
    return round_amount(amount * Decimal("0.029") + Decimal("0.30"), currency)


def apply_outcome(payment: SandboxPayment, outcome: str) -> None:
    payment.state = "authorized" if outcome == SUCCEEDS else "declined"
    payment.message = "" if outcome == SUCCEEDS else DECLINE_MESSAGES[outcome]


def lock_payment(key: UUID) -> SandboxPayment:
    payment = locked_payment_by_key.first(key=key)
    if payment is None:
        raise GatewayRefused(f"There is no payment with the key {key}.")
    return payment


@compiled_query(keep_plan=True)
def locked_payment_by_key() -> QuerySet[SandboxPayment]:
    return SandboxPayment.objects.select_for_update().filter(key=uuid_param("key"))


def to_gateway_payment(payment: SandboxPayment) -> GatewayPayment:
    """Translate a row of the sandbox."""
    action = None
    if payment.state == "action_required":
        action = GatewayAction(payment.secret, f"/sandbox/payments/{payment.secret}")
    return GatewayPayment(
        state=payment.state,  # type: ignore[arg-type]
        reference=f"pay_{payment.key.hex}",
        amount=payment.amount,
        refunded=payment.refunded,
        brand=payment.brand,
        last4=payment.last4,
        message=payment.message,
        currency=payment.currency,
        description=payment.description,
        created_at=payment.created_at,
        action=action,
    )


def to_gateway_refund(refund: SandboxRefund) -> GatewayRefund:
    return GatewayRefund(reference=f"ref_{refund.key.hex}", amount=refund.amount, key=refund.key)
