"""The card as a client supplies it."""

from typing import Any

from payments.cards import Secret
from roombook.api.address import AddressInfo
from roombook.api.serializers import ContractSerializer, DateTimeField, TextField


class SecretField(TextField):
    """Text that does not show in tracebacks and logs of objects."""

    def to_internal_value(self, data: Any) -> Secret:
        return Secret(super().to_internal_value(data))


class AccountPaymentInfo(ContractSerializer):
    """Only shape and length are judged here; cards.py judges the card."""

    FirstName = TextField()
    LastName = TextField()
    CompanyName = TextField()
    CreditCardNumber = SecretField(max_length=40)
    SecurityCode = SecretField(max_length=10)
    ExpirationDate = DateTimeField()
    BillingAddress = AddressInfo()
