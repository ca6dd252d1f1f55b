"""The operations on an account's saved card."""

from typing import Any

from django.utils import timezone

from accounts.models import User
from accounts.serializers import UserInfo
from payments import saved_cards
from payments.serializers import AccountPaymentInfo
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer


class UpdatePaymentInfo(Operation):
    """Save a card with the account, in place of the one before."""

    class Input(ContractSerializer):
        PaymentInfo = AccountPaymentInfo(required=True)

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User, *, payment_info: dict[str, Any]) -> dict[str, Any]:
        saved_cards.update_saved_card(user, payment_info, now=timezone.now())
        return {"updated_user_info": user}


class RemovePaymentInfo(Operation):
    """Take the saved card off the account and out of the gateway."""

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User) -> dict[str, Any]:
        saved_cards.remove_saved_card(user)
        return {"updated_user_info": user}
