"""The contract's account types, as responses show them."""

from roombook.api.address import AddressInfo
from roombook.api.serializers import (
    BooleanField,
    ContractSerializer,
    DateTimeField,
    IdField,
    TextField,
    UrlField,
)


class SavedPaymentInfo(ContractSerializer):
    """What is shown of a saved card; its number and security code are not even kept."""

    FirstName = TextField()
    LastName = TextField()
    CompanyName = TextField()
    Last4DigitsOfCreditCardNumber = TextField(source="last4")
    # The address stands on the card itself.
    BillingAddress = AddressInfo(source="*")
    ExpirationDate = DateTimeField()
    CardType = TextField(source="brand")
    HasCVV = BooleanField()


class UserInfo(ContractSerializer):
    Id = IdField()
    Type = TextField()
    FirstName = TextField()
    LastName = TextField()
    EmailAddress = TextField(source="email")
    CompanyName = TextField()
    PhoneNumber = TextField()
    SavedPaymentInfo = SavedPaymentInfo()
    ThumbnailUrl = UrlField(source="thumbnail")
