"""The personal data of saved cards and payments (B22.10)."""

from payments.models import (
    Dispute,
    Payment,
    PaymentSetup,
    Refund,
    SandboxCard,
    SandboxPayment,
    SandboxSetup,
    SavedCard,
    StripeCustomer,
    StripePayment,
)
from roombook.address import ADDRESS_FIELDS
from roombook.personal_data import (
    DAYS_PER_YEAR,
    DELETED,
    Expiry,
    clear_rows,
    find_by_user,
    register,
    register_owned,
    setting_days,
)

AT_GATEWAY = "Deleted, once the gateway has deleted it too."
FOR_BOOKS = "Stays, under the pseudonym, for bookkeeping."
EMPTY_ADDRESS = {
    name: None if SavedCard._meta.get_field(name).null else "" for name in ADDRESS_FIELDS
}

register(
    SavedCard,
    "user reference brand last4 exp_year exp_month first_name last_name company_name has_cvv"
    " created_at " + " ".join(ADDRESS_FIELDS),
    purpose="To pay with the saved card. Never its number or security code.",
    kept="Until the customer removes or replaces it.",
    at_erasure=f"Holder and address are cleared. {AT_GATEWAY}",
    erase=clear_rows(
        SavedCard,
        find_by_user,
        first_name="",
        last_name="",
        company_name="",
        **EMPTY_ADDRESS,
    ),
)
register(
    StripeCustomer,
    "account reference",
    purpose="The customer that has the account's cards at Stripe.",
    kept="As long as the account.",
    at_erasure=AT_GATEWAY,
)
register(
    SandboxCard,
    "reference customer brand last4",
    purpose="The cards that the sandbox stores, which is for tests.",
    kept="Until the customer removes or replaces it.",
    at_erasure=DELETED,
)
register_owned(
    PaymentSetup,
    "user key reference return_url message reservation card_reference",
    purpose="To save, or charge once, a card that only the gateway sees.",
    kept="As long as the account.",
)
register(
    SandboxSetup,
    "reference secret customer return_url card_reference exp_year exp_month",
    purpose="The payment setups of the sandbox, which is for tests.",
    kept="As long as the account.",
    at_erasure=DELETED,
)
register(
    Payment,
    "reservation reference card_brand card_last4 message taken_by",
    purpose="What was paid, and how: for receipts, refunds and bookkeeping.",
    kept="For ever; the card and the gateway's reference for `BOOKS_YEARS`.",
    at_erasure=FOR_BOOKS,
    expiries=[
        Expiry(
            setting_days("BOOKS_YEARS", days_per_unit=DAYS_PER_YEAR),
            lambda until: Payment.objects.filter(created_at__lt=until),
            cleared={"card_brand": "", "card_last4": "", "message": "", "reference": ""},
        )
    ],
)
register(
    StripePayment,
    "intent",
    purpose="To find the payment at Stripe.",
    kept="`BOOKS_YEARS`.",
    at_erasure=FOR_BOOKS,
    expiries=[
        Expiry(
            setting_days("BOOKS_YEARS", days_per_unit=DAYS_PER_YEAR),
            lambda until: StripePayment.objects.filter(created_at__lt=until),
        )
    ],
)
register(
    SandboxPayment,
    "brand last4",
    purpose="The payments that the sandbox stores, which is for tests.",
    kept="For ever.",
    at_erasure=FOR_BOOKS,
)
register(
    Dispute,
    "payment reference reason",
    purpose="What the customer contests at the bank.",
    kept="For ever.",
    at_erasure=FOR_BOOKS,
)
register(
    Refund,
    "payment reason reference",
    purpose="What was refunded, and why.",
    kept="For ever.",
    at_erasure=FOR_BOOKS,
)
