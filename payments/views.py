"""The operations on the saved card of the signed-in account."""

from uuid import UUID

from django.urls import reverse
from django.utils import timezone

from accounts.limits import check_declined_cards, count_declined_cards
from accounts.models import User
from accounts.serializers import SavedPaymentInfo, UserInfo
from payments import saved_cards, setups
from payments.cards import CardFields
from payments.serializers import (
    EXAMPLE_CARD,
    AccountPaymentInfo,
    PaymentSetupInfo,
)
from roombook.api.fields import TextField
from roombook.api.operations import Operation, TwoStepOperation
from roombook.api.serializers import ContractSerializer, RenderContext
from roombook.errors import CardDeclined, NotFound, PaymentSetupNotComplete, TooManyRequests
from roombook.middleware import get_client_address


class UpdatePaymentInfo(Operation):
    """Save a card with the account; it replaces the one saved before.

    The number and the security code are sent to the payment gateway and stored nowhere else.
    Repeated declines are answered with `TooManyRequests`.
    """

    errors = (CardDeclined, TooManyRequests)
    example = {"PaymentInfo": EXAMPLE_CARD}

    class Input(ContractSerializer):
        PaymentInfo = AccountPaymentInfo(required=True, help_text="The card.")

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo(help_text="The account with the card.")

    def perform(self, user: User, *, payment_info: CardFields) -> dict[str, object]:
        network_address, now = get_client_address(self.request), timezone.now()
        check_declined_cards(network_address, now=now)
        with count_declined_cards(network_address, now=now):
            saved_cards.update_saved_card(user, payment_info, now=now)
        return {"updated_user_info": user}


class RemovePaymentInfo(Operation):
    """Remove the saved card from the account and from the gateway.

    Without a saved card, this succeeds too.
    """

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo(help_text="The account without a card.")

    def perform(self, user: User) -> dict[str, object]:
        saved_cards.remove_saved_card(user)
        return {"updated_user_info": user}


class CreatePaymentSetup(TwoStepOperation):
    """Begin to save a card whose number only the payment gateway sees.

    The customer enters the card in the gateway's SDK, started with `PublishableKey` and
    `ClientSecret`, or on the page at `Url`. Then send Complete payment setup. Nothing is charged.
    After repeated declines, and after 30 setups in an hour, the answer is `TooManyRequests`.
    """

    accepts_idempotency_key = True
    returns_secret = True
    errors = (TooManyRequests,)
    example = {"ReturnUrl": "https://app.example.com/cards"}

    class Input(ContractSerializer):
        ReturnUrl = TextField(
            max_length=setups.MAX_URL_LENGTH,
            help_text="Where the page at `Url` leads to in the end: it begins with `https://` or"
            " with the scheme of an app that the service knows. Default: a page of the service.",
        )

    class Output(ContractSerializer):
        PaymentSetup = PaymentSetupInfo(help_text="How the customer can enter the card.")

    def prepare(self, user: User, *, return_url: str = "") -> dict[str, object]:
        if return_url:
            setups.check_return_url(return_url)
        now = timezone.now()
        check_declined_cards(get_client_address(self.request), now=now)
        setup = setups.create_setup(user, return_url=return_url, now=now)
        return {"setup_id": str(setup.key)}

    def perform(self, user: User, *, setup_id: str) -> dict[str, object]:
        own_page = RenderContext(self.request).build_url(reverse("setup-return", args=[setup_id]))
        setup = setups.get_own_setup(user, UUID(setup_id))
        return {"payment_setup": setups.open_setup(setup, own_page=own_page)}


class CompletePaymentSetup(Operation):
    """Save the card that the customer has entered; it replaces the one saved before.

    Repeating it changes nothing. It may be left out: the service also learns from the gateway that
    the customer has finished, a little later.
    """

    errors = (CardDeclined, NotFound, PaymentSetupNotComplete, TooManyRequests)
    example = {"PaymentSetupId": setups.EXAMPLE_SETUP}

    class Input(ContractSerializer):
        PaymentSetupId = TextField(
            required=True,
            allow_blank=False,
            max_length=100,
            help_text="The `Id` that Create payment setup returned.",
        )

    class Output(ContractSerializer):
        SavedPaymentInfo = SavedPaymentInfo(help_text="The card that the account has now.")

    def perform(self, user: User, *, payment_setup_id: str) -> dict[str, object]:
        now = timezone.now()
        with count_declined_cards(get_client_address(self.request), now=now):
            saved = setups.complete_setup(user, payment_setup_id, now=now)
        return {"saved_payment_info": saved}
