"""The operations on the signed-in account."""

from typing import cast

from django.urls import reverse
from django.utils import timezone

from accounts import profile, sign_in
from accounts.models import ApiToken, CalendarAddress, User
from accounts.serializers import PasswordField, UserInfo
from roombook.api.fields import BooleanField, TextField, UrlField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import InvalidCredentials, TooManyRequests
from roombook.middleware import get_client_address


class SignIn(Operation):
    """Sign a device in and return the Token that all other requests carry.

    The Token expires when it is not used for a while, after a change of the password elsewhere, and
    when Sign out revokes it: then requests are answered with `NotSignedIn`. Repeated failures are
    answered with `TooManyRequests`, also for the right password.
    """

    requires_token = False
    returns_secret = True
    errors = (InvalidCredentials, TooManyRequests)
    example = {"EmailAddress": "demo@roombook.example", "Password": "quiet-harbour-42"}

    class Input(ContractSerializer):
        EmailAddress = TextField(
            required=True, allow_blank=False, help_text="The address of the account, in any case."
        )
        Password = PasswordField("Used as sent, spaces included.")

    class Output(ContractSerializer):
        UserInfo = UserInfo(help_text="The account that signed in.")
        Token = TextField(help_text="For the field `Token` of all other requests. Keep it secret.")

    def perform(self, user: None, *, email_address: str, password: str) -> dict[str, object]:
        user_info, token = sign_in.sign_in(
            email=email_address,
            password=password,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
        return {"user_info": user_info, "token": token}


class UpdateAccountInfo(Operation):
    """Change names, company and phone number.

    An absent field stays unchanged. Text that looks like a card number is refused.
    """

    example = {"NewPhoneNumber": "+1 303 555 0100"}

    class Input(ContractSerializer):
        NewFirstName = TextField(help_text="The first name; it cannot be cleared.")
        NewLastName = TextField(help_text="The last name; it cannot be cleared.")
        NewCompanyName = TextField(help_text="The company; empty text clears it.")
        NewPhoneNumber = TextField(
            max_length=50, help_text="The phone number; empty text clears it."
        )

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo(help_text="The account with the changes.")

    def perform(self, user: User, **new: str) -> dict[str, object]:
        return {"updated_user_info": profile.update_profile(user, **new)}


class RemoveAccountThumbnail(Operation):
    """Remove the account's picture. If there is none, this succeeds too."""

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo(help_text="The account without a picture.")

    def perform(self, user: User) -> dict[str, object]:
        return {"updated_user_info": profile.remove_thumbnail(user)}


# For fields that set a password (B7.4).
NEW_PASSWORD_HELP = (
    "At least 8 characters; not only digits, not a common password, not similar to the account's"
    " names or e-mail address"
)


class ChangePassword(Operation):
    """Change the password and sign all other devices out.

    The Token of this request stays valid. A wrong current password counts as a failed sign-in.
    """

    errors = (TooManyRequests,)
    example = {
        "CurrentPassword": "quiet-harbour-42",
        "NewPassword": "noisy-harbour-43",
        "ConfirmNewPassword": "noisy-harbour-43",
    }

    class Input(ContractSerializer):
        CurrentPassword = PasswordField("The password that is valid now.")
        NewPassword = PasswordField(f"{NEW_PASSWORD_HELP}, and not the current one.")
        ConfirmNewPassword = PasswordField("The new password again.")

    def perform(
        self,
        user: User,
        *,
        current_password: str,
        new_password: str,
        confirm_new_password: str,
    ) -> None:
        sign_in.change_password(
            user,
            current_password=current_password,
            new_password=new_password,
            confirm_new_password=confirm_new_password,
            token=cast("ApiToken", self.request.auth),
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )


class GetCalendar(Operation):
    """Return the secret address of the account's meetings, for calendar programs.

    It is the same at each call until it is revoked.
    """

    returns_secret = True
    example = {"Revoke": False}

    class Input(ContractSerializer):
        Revoke = BooleanField(
            help_text="Replace the address; the old one is not found from then on. Default: false."
        )

    class Output(ContractSerializer):
        CalendarUrl = UrlField(
            help_text="Absolute. Everybody who knows it can read the calendar: keep it secret."
        )

    def perform(self, user: User, *, revoke: bool = False) -> dict[str, object]:
        secret = CalendarAddress.get_secret(user, is_revoked=revoke)
        return {"calendar_url": reverse("calendar", args=[secret])}


class SignOut(Operation):
    """Sign this device out: the Token of this request becomes invalid, and no other."""

    def perform(self, user: User) -> None:
        cast("ApiToken", self.request.auth).delete()
