"""The operations on the saved card of the signed-in account."""

from django.utils import timezone

from accounts.models import User
from accounts.serializers import UserInfo
from payments import saved_cards
from payments.cards import CardFields
from payments.serializers import EXAMPLE_CARD, AccountPaymentInfo
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import CardDeclined, TooManyRequests


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
        saved_cards.update_saved_card(user, payment_info, now=timezone.now())
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
