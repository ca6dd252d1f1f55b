"""The cards of the sandbox: the test numbers that Stripe documents, and what happens to each."""

import secrets

from django.db.models import QuerySet

from payments.cards import Card
from payments.gateways import declines
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.gateways.sandbox_operations import operation
from roombook.db.compiled_queries import compiled_query, text_param
from roombook.errors import CardDeclined

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


class SandboxCardOperations:
    """What the sandbox does with stored cards."""

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
