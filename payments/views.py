"""The operations on the saved card of the signed-in account."""

from django.utils import timezone

from accounts.models import User
from accounts.serializers import UserInfo
from payments import saved_cards
from payments.cards import CardFields
from payments.serializers import AccountPaymentInfo
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer


class UpdatePaymentInfo(Operation):
    """Save a card with the account; it replaces the one saved before."""

    class Input(ContractSerializer):
        PaymentInfo = AccountPaymentInfo(required=True)

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User, *, payment_info: CardFields) -> dict[str, object]:
        saved_cards.update_saved_card(user, payment_info, now=timezone.now())
        return {"updated_user_info": user}


class RemovePaymentInfo(Operation):
    """Remove the saved card from the account and from the gateway."""

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User) -> dict[str, object]:
        saved_cards.remove_saved_card(user)
        return {"updated_user_info": user}
