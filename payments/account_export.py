"""What the export of an account has of its payments, payment setups and saved card (B22.11)."""

from payments.models import Payment, PaymentSetup, SavedCard
from roombook.naming import get_contract_fields


def describe_card(card: SavedCard) -> dict[str, object]:
    return {
        "CardType": card.brand,
        "Last4Digits": card.last4,
        **get_contract_fields(card, "expiration_date", "first_name", "last_name", "company_name"),
        **get_contract_fields(card, "street1", "street2", "street3", "city", "state"),
        **get_contract_fields(card, "postal_code", "country"),
        "SavedAt": card.created_at,
    }


def describe_setup(setup: PaymentSetup) -> dict[str, object]:
    return get_contract_fields(setup, "state", "message", "return_url", "created_at", "expires_at")


def describe_payment(payment: Payment) -> dict[str, object]:
    return {
        **get_contract_fields(payment, "purpose", "state", "amount"),
        "CardType": payment.card_brand,
        "Last4Digits": payment.card_last4,
        **get_contract_fields(payment, "message", "created_at", "captured_at"),
        "Refunds": [
            get_contract_fields(each, "state", "amount", "reason", "created_at")
            for each in payment.refunds.all()
        ],
        "Disputes": [
            get_contract_fields(each, "status", "amount", "reason", "opened_at", "closed_at")
            for each in payment.disputes.all()
        ],
    }
