"""A payment card as a client sends it."""

from payments.cards import Secret
from roombook.api.address import AddressInfo
from roombook.api.card_refusal import CardDataField
from roombook.api.fields import DateTimeField, TextField, UrlField
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


class PaymentSetupInfo(ContractSerializer):
    """How a customer can enter a card that the service does not see. Responses only.

    ClientSecret and Url are missing once the customer has finished or the time is over.
    """

    Id = TextField(help_text="For Complete payment setup.")
    Gateway = TextField(source="setup.gateway", help_text="`stripe` or `sandbox`.")
    PublishableKey = TextField(help_text="With which the app starts the gateway's SDK. No secret.")
    ClientSecret = TextField(
        source="at_gateway.client_secret",
        help_text="For the gateway's SDK. Keep it secret, and do not store it.",
    )
    CustomerId = TextField(
        source="at_gateway.customer", help_text="The account's customer at the gateway."
    )
    Url = UrlField(
        source="at_gateway.url",
        help_text="A page of the gateway where the customer can enter the card. Keep it secret.",
    )
    ExpiresAt = DateTimeField(
        source="setup.expires_at", help_text="Until then the customer can enter the card."
    )


# A test card of the sandbox.
EXAMPLE_CARD = {
    "FirstName": "Dana",
    "LastName": "Moreno",
    "CreditCardNumber": "4242 4242 4242 4242",
    "SecurityCode": "123",
    "ExpirationDate": "2035-12-31",
}
