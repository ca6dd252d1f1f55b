"""The sandbox: a gateway that charges nobody, for development and tests.

It behaves like a real one: it has its own tables (sandbox_models.py), commits its changes itself,
and must not be called inside a transaction. It accepts only the test numbers that Stripe documents.
"""

import functools
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, ParamSpec, TypeVar
from uuid import UUID

from django.db.models import F, Q, QuerySet

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.base import (
    GatewayPayment,
    GatewayRefund,
    GatewayRefused,
    GatewayUnavailable,
    require_no_open_transaction,
)
from payments.gateways.sandbox_models import (
    FaultKind,
    SandboxCard,
    SandboxFault,
    SandboxPayment,
    SandboxRefund,
)
from roombook.db.compiled_queries import compiled_query, text_param, uuid_param
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined

P = ParamSpec("P")
R = TypeVar("R")

# The outcome of each test number. Only the outcome is stored, never the number.
SUCCEEDS = "succeeds"
NOT_A_TEST_CARD = "not_a_test_card"

OUTCOMES = {
    # Visa, MasterCard, American Express, Discover, Diners Club, JCB, UnionPay.
    "4242424242424242": SUCCEEDS,
    "4000056655665556": SUCCEEDS,
    "5555555555554444": SUCCEEDS,
    "2223003122003222": SUCCEEDS,
    "5200828282828210": SUCCEEDS,
    "5105105105105100": SUCCEEDS,
    "378282246310005": SUCCEEDS,
    "371449635398431": SUCCEEDS,
    "6011111111111117": SUCCEEDS,
    "6011000990139424": SUCCEEDS,
    "6011981111111113": SUCCEEDS,
    "3056930009020004": SUCCEEDS,
    "36227206271667": SUCCEEDS,
    "3566002020360505": SUCCEEDS,
    "6200000000000005": SUCCEEDS,
    "6200000000000047": SUCCEEDS,
    "6205500000000000004": SUCCEEDS,
    # Maestro: Stripe documents none; this one is Braintree's.
    "6304000000000000": SUCCEEDS,
    "4000000000000002": "declined",
    "4000000000009995": "insufficient_funds",
    "4000000000009987": "lost_card",
    "4000000000009979": "stolen_card",
    "4000000000000069": "expired_card",
    "4000000000000127": "incorrect_cvc",
    "4000000000000119": "processing_error",
    "4000000000006975": "velocity_exceeded",
    "4100000000000019": "fraudulent",
    "4000000000000341": "declined_when_charged",
    "4000002500003155": "requires_action",
    "4000002760003184": "requires_action",
}

# Lost and stolen cards get the general message: the person who holds the card must not learn why.
DECLINE_MESSAGES = {
    "declined": declines.DECLINED,
    "declined_when_charged": declines.DECLINED,
    "lost_card": declines.DECLINED,
    "stolen_card": declines.DECLINED,
    "fraudulent": declines.DECLINED,
    "insufficient_funds": declines.INSUFFICIENT_FUNDS,
    "expired_card": declines.EXPIRED,
    "incorrect_cvc": declines.WRONG_SECURITY_CODE,
    "processing_error": declines.PROCESSING_ERROR,
    "velocity_exceeded": declines.OVER_LIMIT,
    "requires_action": declines.REQUIRES_ACTION,
    NOT_A_TEST_CARD: (
        "This is a sandbox: it takes only test cards, such as 4242 4242 4242 4242."
        " You were not charged."
    ),
    "unknown_card": declines.UNKNOWN_CARD,
}

# As with Stripe, these cards can be stored and fail only when they are charged.
FAIL_ONLY_WHEN_CHARGED = {"declined_when_charged", "requires_action"}


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


class SandboxGateway:
    """Implements the Gateway protocol of gateways/base.py."""

    name: ClassVar[str] = "sandbox"
    is_live = False

    @operation("store")
    def store_card(self, card: Card, *, customer: str) -> str:
        outcome = get_outcome(card.number)
        if outcome != SUCCEEDS and outcome not in FAIL_ONLY_WHEN_CHARGED:
            raise CardDeclined(DECLINE_MESSAGES[outcome])
        return SandboxCard.objects.create(
            reference=f"card_{secrets.token_hex(12)}",
            customer=customer,
            outcome=outcome,
            brand=card.brand,
            last4=card.last4,
        ).reference

    @operation("forget")
    def delete_card(self, reference: str) -> None:
        SandboxCard.objects.filter(reference=reference).delete()

    @operation("check")
    def check_card(self, source: Card | str) -> None:
        outcome, _, _ = evaluate_card(source)
        if outcome != SUCCEEDS:
            raise CardDeclined(DECLINE_MESSAGES[outcome])

    @operation("authorize")
    def authorize(
        self, *, key: UUID, amount: Decimal, currency: str, source: Card | str, description: str
    ) -> GatewayPayment:
        outcome, brand, last4 = evaluate_card(source)
        succeeds = outcome == SUCCEEDS
        payment = SandboxPayment(
            key=key,
            state="authorized" if succeeds else "declined",
            amount=amount,
            currency=currency,
            brand=brand,
            last4=last4,
            message="" if succeeds else DECLINE_MESSAGES[outcome],
            description=description[:255],
        )
        # The unique key decides between concurrent calls: one creates the payment.
        SandboxPayment.objects.bulk_create([payment], ignore_conflicts=True)
        payment = locked_payment_by_key.first(key=key) or payment
        is_fence = payment.state == "voided" and not payment.currency
        if not is_fence and (payment.amount, payment.currency) != (amount, currency):
            raise GatewayRefused(f"The key {key} was used for another amount.")
        return to_gateway_payment(payment)

    @operation("lookup")
    def find_payment(self, key: UUID) -> GatewayPayment | None:
        payment = SandboxPayment.objects.filter(key=key).first()
        return to_gateway_payment(payment) if payment else None

    @operation("void")
    def void(self, key: UUID) -> GatewayPayment:
        payment, _ = SandboxPayment.objects.select_for_update().get_or_create(
            key=key, defaults={"state": "voided"}
        )
        if payment.state == "authorized":
            payment.state = "voided"
            payment.save(update_fields=["state"])
        return to_gateway_payment(payment)

    @operation("capture")
    def capture(self, key: UUID) -> GatewayPayment:
        payment = lock_payment(key)
        if payment.state == "authorized":
            payment.state = "captured"
            payment.captures += 1
            payment.save(update_fields=["state", "captures"])
        return to_gateway_payment(payment)

    @operation("refund")
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

    @operation("lookup")
    def list_refunds(self, key: UUID) -> list[GatewayRefund]:
        rows = SandboxRefund.objects.filter(payment__key=key).order_by("pk")
        return [to_gateway_refund(row) for row in rows]

    @operation("list")
    def list_payments(self, since: datetime) -> Iterator[tuple[UUID, GatewayPayment]]:
        rows = SandboxPayment.objects.filter(
            created_at__gte=since, state__in=["authorized", "captured", "refunded"]
        )
        return iter([(row.key, to_gateway_payment(row)) for row in rows.order_by("pk")])

    @operation("list")
    def list_recent_refunds(self, since: datetime) -> list[tuple[UUID, GatewayRefund]]:
        rows = SandboxRefund.objects.filter(created_at__gte=since).select_related("payment")
        return [(row.payment.key, to_gateway_refund(row)) for row in rows.order_by("pk")]


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


def get_outcome(number: str) -> str:
    return OUTCOMES.get(number, NOT_A_TEST_CARD)


def evaluate_card(source: Card | str) -> tuple[str, str, str]:
    """The outcome of charging the card, with its brand and last four digits."""
    if isinstance(source, Card):
        return get_outcome(source.number), source.brand, source.last4
    card = stored_card_by_reference.first(reference=source)
    return (card.outcome, card.brand, card.last4) if card else ("unknown_card", "", "")


@compiled_query(keep_plan=True)
def stored_card_by_reference() -> QuerySet[SandboxCard]:
    return SandboxCard.objects.filter(reference=text_param("reference"))


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
    )


def to_gateway_refund(refund: SandboxRefund) -> GatewayRefund:
    return GatewayRefund(reference=f"ref_{refund.key.hex}", amount=refund.amount, key=refund.key)
