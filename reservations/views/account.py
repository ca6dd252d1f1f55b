"""The operations on the account as a whole (B22.7)."""

from django.utils import timezone

from accounts import sign_in
from accounts.models import User
from accounts.passwords import MAX_PASSWORD_LENGTH
from reservations.booking import account_erasure
from roombook.api.fields import TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import AccountInUse, TooManyRequests
from roombook.middleware import get_client_address


class DeleteAccount(Operation):
    """Erase the account: names, addresses, card, picture, e-mails and all devices.

    Drafts are cancelled. It is refused while a booking lies ahead, or while money is in doubt or
    owed. Earlier bookings stay under a pseudonym, for the books. This cannot be undone.
    """

    errors = (AccountInUse, TooManyRequests)
    example = {"Password": "quiet-harbour-42"}

    class Input(ContractSerializer):
        Password = TextField(
            required=True,
            allow_blank=False,
            trim=False,
            max_length=MAX_PASSWORD_LENGTH,
            help_text="The current password. A wrong one counts as a failed sign-in.",
        )

    def perform(self, user: User, *, password: str) -> None:
        now = timezone.now()
        sign_in.require_password(
            user,
            password,
            field="password",
            network_address=get_client_address(self.request),
            now=now,
        )
        account_erasure.erase_account(user.pk, by=user, now=now)
