"""The contract's account types, as responses show them."""

from roombook.api.address import AddressInfo
from roombook.api.fields import BooleanField, DateTimeField, IdField, TextField, UrlField
from roombook.api.serializers import ContractSerializer


class SavedPaymentInfo(ContractSerializer):
    """What responses show of a saved card. Its number and security code are never shown, and not
    even stored."""

    FirstName = TextField()
    LastName = TextField()
    CompanyName = TextField()
    Last4DigitsOfCreditCardNumber = TextField(source="last4")
    BillingAddress = AddressInfo(source="*")
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

    Id = IdField()
    Type = TextField(contract_type="UserTypes", help_text="`Account`, `Staff` or `Administrator`.")
    FirstName = TextField()
    LastName = TextField()
    EmailAddress = TextField(source="email")
    CompanyName = TextField()
    PhoneNumber = TextField()
    SavedPaymentInfo = SavedPaymentInfo()
    ThumbnailUrl = UrlField(source="thumbnail", help_text="Absolute.")
