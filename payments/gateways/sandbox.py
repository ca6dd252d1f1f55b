"""The sandbox: a gateway that charges nobody, for development and tests.

It behaves like a real one: it has its own tables (sandbox_models.py), commits its changes itself,
and must not be called inside a transaction. It accepts only the test numbers that Stripe documents.
"""

import functools
import secrets
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, ParamSpec, TypeVar
from uuid import UUID, uuid5

from django.db.models import QuerySet

from payments.cards import Card, CardBrand
from payments.gateways import declines
from payments.gateways.base import (
    GatewayAction,
    GatewayCard,
    GatewayFees,
    GatewayPayment,
    GatewayRefund,
    GatewayRefused,
    GatewaySetup,
    require_no_open_transaction,
)
from payments.gateways.sandbox_models import (
    SandboxCard,
    SandboxPayment,
    SandboxRefund,
    SandboxSetup,
)
from roombook.db.compiled_queries import compiled_query, text_param, uuid_param
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined
from roombook.money import ZERO, round_amount

P = ParamSpec("P")
R = TypeVar("R")


def operation(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method in a transaction of its own, never in one of the caller."""

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        require_no_open_transaction()
        return in_transaction(method)(*args, **kwargs)

    return run


# --- Test cards ----------------------------------------------------------------------------------

# The outcome of each test number. Only the outcome is stored, never the number.
SUCCEEDS = "succeeds"
NOT_A_TEST_CARD = "not_a_test_card"
# The bank asks for a confirmation, and never says whether it was given.
NEVER_CONFIRMED = "never_confirmed"

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
    "4000002760003184": "requires_action",
    "4000000000003220": "requires_action",
    "4000002500003155": "action_unless_set_up",
    "4000008260003178": "action_then_insufficient_funds",
    "4000008400001629": "action_then_declined",
    "4000008400001280": NEVER_CONFIRMED,
}

# What comes of a payment with the card after the customer has confirmed it at the bank.
OUTCOMES_AFTER_CONFIRMATION = {
    "requires_action": SUCCEEDS,
    "action_then_insufficient_funds": "insufficient_funds",
    "action_then_declined": "declined",
    NEVER_CONFIRMED: NEVER_CONFIRMED,
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
    **dict.fromkeys(
        (*OUTCOMES_AFTER_CONFIRMATION, "action_unless_set_up"), declines.REQUIRES_ACTION
    ),
    NOT_A_TEST_CARD: (
        "This is a sandbox: it takes only test cards, such as 4242 4242 4242 4242."
        " You were not charged."
    ),
    "unknown_card": declines.UNKNOWN_CARD,
}

# As with Stripe, these cards can be stored and fail only when they are charged.
FAIL_ONLY_WHEN_CHARGED = {
    *("declined_when_charged", "action_unless_set_up"),
    *OUTCOMES_AFTER_CONFIRMATION,
}

# States in which the customer can still enter a card.
OPEN_STATES = {"open", "failed"}


# --- The gateway ---------------------------------------------------------------------------------


class SandboxGateway:
    """Implements the Gateway protocol of gateways/base.py."""

    name: ClassVar[str] = "sandbox"
    is_live = False
    publishable_key = "pk_sandbox"

    # --- Payments --------------------------------------------------------------------------------

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

    # --- Stored cards ----------------------------------------------------------------------------

    @operation
    def store_card(self, card: Card, *, customer: str) -> str:
        return create_card(card, customer=customer).reference

    @operation
    def delete_card(self, reference: str) -> None:
        SandboxCard.objects.filter(reference=reference).delete()

    @operation
    def delete_customer(self, customer: str) -> None:
        SandboxSetup.objects.filter(customer=customer).delete()
        SandboxCard.objects.filter(customer=customer).delete()

    @operation
    def check_card(self, source: Card | str, *, on_session: bool = False) -> None:
        outcome, _, _ = evaluate_card(source)
        if on_session:
            outcome = OUTCOMES_AFTER_CONFIRMATION.get(outcome, outcome)
        if outcome not in {SUCCEEDS, NEVER_CONFIRMED}:
            raise CardDeclined(DECLINE_MESSAGES[outcome])

    # --- Payment setups --------------------------------------------------------------------------

    @operation
    def create_setup(
        self, *, key: UUID, customer: str, return_url: str, expires_at: datetime
    ) -> GatewaySetup:
        setup, _ = SandboxSetup.objects.get_or_create(
            key=key,
            defaults={
                "reference": f"setup_{key.hex}",
                "secret": secrets.token_hex(32),
                "customer": customer,
                "return_url": return_url,
                "expires_at": expires_at,
            },
        )
        return to_gateway_setup(setup)

    @operation
    def find_setup(self, reference: str) -> GatewaySetup:
        setup = SandboxSetup.objects.filter(reference=reference).first()
        return to_gateway_setup(setup) if setup else GatewaySetup("expired", reference)

    @operation
    def cancel_setup(self, reference: str) -> GatewaySetup:
        setup = SandboxSetup.objects.select_for_update().filter(reference=reference).first()
        if setup is None:
            return GatewaySetup("expired", reference)
        if setup.state in OPEN_STATES:
            setup.state = "expired"
            setup.save(update_fields=["state"])
        return to_gateway_setup(setup)


# --- What customers do on the pages of the sandbox -----------------------------------------------


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


@operation
def confirm_setup(secret: str, card: Card) -> GatewaySetup:
    """Store the card that the customer entered. Does nothing if the setup has ended."""
    setup = SandboxSetup.objects.select_for_update().get(secret=secret)
    if setup.state in OPEN_STATES:
        try:
            stored = create_card(card, customer=setup.customer, is_set_up=True)
            setup.card_reference = stored.reference
        except CardDeclined as error:
            setup.state, setup.message = "failed", error.message
        else:
            setup.state, setup.message = "succeeded", ""
            setup.exp_year, setup.exp_month = card.exp_year, card.exp_month
        setup.save()
    return to_gateway_setup(setup)


@operation
def refuse_setup(secret: str) -> GatewaySetup:
    """The customer did not confirm the card at the bank. Another card can still be entered."""
    setup = SandboxSetup.objects.select_for_update().get(secret=secret)
    if setup.state in OPEN_STATES:
        setup.state, setup.message = "failed", declines.NOT_CONFIRMED
        setup.save(update_fields=["state", "message"])
    return to_gateway_setup(setup)


# --- Rows ----------------------------------------------------------------------------------------


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


def create_card(card: Card, *, customer: str, is_set_up: bool = False) -> SandboxCard:
    """Store the outcome of a card. Raises CardDeclined."""
    outcome = get_outcome(card.number)
    if is_set_up and outcome == "action_unless_set_up":
        outcome = SUCCEEDS
    if outcome != SUCCEEDS and outcome not in FAIL_ONLY_WHEN_CHARGED:
        raise CardDeclined(DECLINE_MESSAGES[outcome])
    return SandboxCard.objects.create(
        reference=f"card_{secrets.token_hex(12)}",
        customer=customer,
        outcome=outcome,
        brand=card.brand,
        last4=card.last4,
    )


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


def to_gateway_setup(setup: SandboxSetup) -> GatewaySetup:
    """Translate a row of the sandbox."""
    is_open = setup.state in OPEN_STATES
    card = None
    if setup.exp_year and setup.exp_month:
        stored = SandboxCard.objects.filter(reference=setup.card_reference).first()
        if stored is None:
            # It was deleted since.
            return GatewaySetup("expired", setup.reference)
        card = GatewayCard(
            reference=stored.reference,
            brand=CardBrand(stored.brand),
            last4=stored.last4,
            exp_year=setup.exp_year,
            exp_month=setup.exp_month,
            has_cvv=True,
        )
    return GatewaySetup(
        state=setup.state,  # type: ignore[arg-type]
        reference=setup.reference,
        customer=f"customer_{setup.customer}",
        client_secret=setup.secret if is_open else "",
        url=f"/sandbox/setups/{setup.secret}" if is_open else "",
        card=card,
        message=setup.message,
        # The sandbox does not number attempts: a refusal for another reason is another one.
        refused_attempts=(uuid5(setup.key, setup.message).hex,) if setup.message else (),
    )
