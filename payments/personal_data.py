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
    Expiry,
    clear_rows,
    find_by_user,
    register,
    register_owned,
    setting_days,
)

EMPTY_ADDRESS = {
    name: None if SavedCard._meta.get_field(name).null else "" for name in ADDRESS_FIELDS
}

register(
    SavedCard,
    "user reference brand last4 exp_year exp_month first_name last_name company_name has_cvv"
    " created_at " + " ".join(ADDRESS_FIELDS),
    erase=clear_rows(
        SavedCard,
        find_by_user,
        first_name="",
        last_name="",
        company_name="",
        **EMPTY_ADDRESS,
    ),
)
register(StripeCustomer, "account reference")
register(SandboxCard, "reference customer brand last4")
register_owned(PaymentSetup, "user key reference return_url message reservation card_reference")
register(SandboxSetup, "reference secret customer return_url card_reference exp_year exp_month")
register(
    Payment,
    "reservation reference card_brand card_last4 message taken_by",
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
    expiries=[
        Expiry(
            setting_days("BOOKS_YEARS", days_per_unit=DAYS_PER_YEAR),
            lambda until: StripePayment.objects.filter(created_at__lt=until),
        )
    ],
)
register(SandboxPayment, "brand last4")
register(Dispute, "payment reference reason")
register(Refund, "payment reason reference")
