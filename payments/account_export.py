"""What the export of an account has of its payments, payment setups and saved card (B22.11)."""

from payments.models import Payment, PaymentSetup, SavedCard


def describe_card(card: SavedCard) -> dict[str, object]:
    return {
        "CardType": card.brand,
        "Last4Digits": card.last4,
        "ExpirationDate": card.expiration_date,
        "FirstName": card.first_name,
        "LastName": card.last_name,
        "CompanyName": card.company_name,
        "Street1": card.street1,
        "Street2": card.street2,
        "Street3": card.street3,
        "City": card.city,
        "State": card.state,
        "PostalCode": card.postal_code,
        "Country": card.country,
        "SavedAt": card.created_at,
    }


def describe_setup(setup: PaymentSetup) -> dict[str, object]:
    return {
        "State": setup.state,
        "Message": setup.message,
        "ReturnUrl": setup.return_url,
        "CreatedAt": setup.created_at,
        "ExpiresAt": setup.expires_at,
    }


def describe_payment(payment: Payment) -> dict[str, object]:
    return {
        "Purpose": payment.purpose,
        "State": payment.state,
        "Amount": payment.amount,
        "CardType": payment.card_brand,
        "Last4Digits": payment.card_last4,
        "Message": payment.message,
        "CreatedAt": payment.created_at,
        "CapturedAt": payment.captured_at,
        "Refunds": [
            {
                "State": refund.state,
                "Amount": refund.amount,
                "Reason": refund.reason,
                "CreatedAt": refund.created_at,
            }
            for refund in payment.refunds.all()
        ],
        "Disputes": [
            {
                "Status": dispute.status,
                "Amount": dispute.amount,
                "Reason": dispute.reason,
                "OpenedAt": dispute.opened_at,
                "ClosedAt": dispute.closed_at,
            }
            for dispute in payment.disputes.all()
        ],
    }
