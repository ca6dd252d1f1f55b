"""The operations on the account as a whole (B22.7, B22.11)."""

from django.utils import timezone

from accounts import account_export, sign_in
from accounts.limits import EXPORT
from accounts.models import User
from accounts.serializers import PasswordField
from reservations.booking import account_erasure
from roombook.api.fields import ObjectField, TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import AccountInUse, TooManyRequests
from roombook.middleware import get_client_address

TOO_LARGE = "Your data is too large for the app. Please contact us, and we send it to you."


class ExportAccount(Operation):
    """Return everything that is stored about the account, as one object.

    Message replaces it if a list has more than 5,000 elements: then staff export it.
    """

    errors = (TooManyRequests,)

    class Output(ContractSerializer):
        Export = ObjectField(help_text="The account, and lists of all that belongs to it.")
        Message = TextField(help_text="Instead of Export, if it is too large: how to get it.")

    def perform(self, user: User) -> dict[str, object]:
        EXPORT.attempt(user.pk, now=timezone.now())
        export = account_export.build_export(user)
        return {"message": TOO_LARGE} if export is None else {"export": export}


class DeleteAccount(Operation):
    """Erase the account: names, addresses, card, picture, e-mails and all devices.

    Drafts are cancelled. It is refused while a booking lies ahead, or while money is in doubt or
    owed. Earlier bookings stay under a pseudonym, for bookkeeping. This cannot be undone.
    """

    errors = (AccountInUse, TooManyRequests)
    example = {"Password": "quiet-harbour-42"}

    class Input(ContractSerializer):
        Password = PasswordField("The current password. A wrong one counts as a failed sign-in.")

    def perform(self, user: User, *, password: str) -> None:
        now = timezone.now()
        sign_in.require_password(
            user,
            password,
            field="password",
            network_address=get_client_address(self.request),
            now=now,
        )
        account_erasure.erase_account(user.pk, by=user, verified=user, now=now)
