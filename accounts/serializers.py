"""The contract's account types, as responses show them, and the field of a password."""

from accounts.models import UserType
from accounts.passwords import MAX_PASSWORD_LENGTH
from roombook.api.address import AddressInfo
from roombook.api.fields import (
    BooleanField,
    ChoiceField,
    DateTimeField,
    IdField,
    TextField,
    UrlField,
)
from roombook.api.serializers import ContractSerializer


class PasswordField(TextField):
    """A password: kept exactly as sent, spaces included."""

    def __init__(self, help_text: str) -> None:
        super().__init__(
            required=True,
            allow_blank=False,
            trim=False,
            max_length=MAX_PASSWORD_LENGTH,
            help_text=help_text,
        )


class SavedPaymentInfo(ContractSerializer):
    """What responses show of a saved card. Its number and security code are never shown, and not
    even stored."""

    FirstName = TextField(help_text="The cardholder's.")
    LastName = TextField(help_text="The cardholder's.")
    CompanyName = TextField(help_text="The cardholder's.")
    Last4DigitsOfCreditCardNumber = TextField(source="last4", help_text="Such as `4242`.")
    BillingAddress = AddressInfo(source="*", help_text="As it was sent with the card.")
    ExpirationDate = DateTimeField(help_text="Midnight UTC on the last day of its month.")
    CardType = TextField(
        source="brand",
        help_text="`Visa`, `MasterCard`, `AmericanExpress`, `Discover`, `DinersClub`, `JCB`,"
        " `UnionPay`, `Maestro`.",
    )
    HasCVV = BooleanField(
        help_text="Whether a security code was given; the code itself is not stored."
    )


class UserInfo(ContractSerializer):
    """An account."""

    Id = IdField(help_text="The id of the account.")
    Type = ChoiceField(
        UserType, contract_type="UserTypes", help_text="`Account`, `Staff` or `Administrator`."
    )
    FirstName = TextField(help_text="The customer's.")
    LastName = TextField(help_text="The customer's.")
    EmailAddress = TextField(source="email", help_text="With which the account signs in.")
    CompanyName = TextField(help_text="The customer's.")
    PhoneNumber = TextField(help_text="As it was entered.")
    SavedPaymentInfo = SavedPaymentInfo(help_text="The saved card.")
    ThumbnailUrl = UrlField(source="thumbnail", help_text="Absolute.")
