"""A payment card as a client sends it."""

from payments.cards import Secret
from roombook.api.address import AddressInfo
from roombook.api.card_refusal import CardDataField
from roombook.api.fields import DateTimeField, TextField
from roombook.api.serializers import ContractSerializer


class SecretField(CardDataField):
    """Text that is hidden in tracebacks and in logs of objects."""

    def to_internal_value(self, data: object) -> Secret:
        return Secret(super().to_internal_value(data))


class AccountPaymentInfo(ContractSerializer):
    """A card as the client sends it. Requests only."""

    # Only form and length are checked here; cards.py validates the card.
    FirstName = TextField(help_text="Required. The cardholder's.")
    LastName = TextField(help_text="Required. The cardholder's.")
    CompanyName = TextField(help_text="The cardholder's.")
    CreditCardNumber = SecretField(
        max_length=40,
        help_text="Required. 12-19 digits; spaces and dashes are fine. A deployment with"
        " `CARD_NUMBERS=refuse` refuses it: save the card with `create-payment-setup`.",
    )
    SecurityCode = SecretField(
        max_length=10,
        help_text="3 digits, 4 for American Express; may be left out. Refused with the number.",
    )
    ExpirationDate = DateTimeField(help_text="Required. A time in the month of expiry.")
    BillingAddress = AddressInfo(help_text="Passed on to the bank, which may compare it.")


# A test card of the sandbox.
EXAMPLE_CARD = {
    "FirstName": "Dana",
    "LastName": "Moreno",
    "CreditCardNumber": "4242 4242 4242 4242",
    "SecurityCode": "123",
    "ExpirationDate": "2035-12-31",
}
