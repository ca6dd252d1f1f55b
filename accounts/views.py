"""The operations on accounts: signing in and up, passwords, addresses and calendars."""

from typing import cast

from django.urls import reverse
from django.utils import timezone

from accounts import email_codes, profile, sign_in
from accounts.models import ApiToken, CalendarAddress, User
from accounts.serializers import PasswordField, UserInfo
from roombook.api.fields import BooleanField, TextField, UrlField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import InvalidCredentials, NotFound, TooManyRequests
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


# --- Signing up, new passwords and new addresses, by codes ----------------------------------------

EXAMPLE_CODE = "1234 5678"


class EmailAddressField(TextField):
    """An e-mail address, in any case."""

    def __init__(self, help_text: str) -> None:
        super().__init__(required=True, allow_blank=False, max_length=254, help_text=help_text)


class CodeField(TextField):
    """A code that was sent by e-mail."""

    def __init__(self) -> None:
        super().__init__(
            required=True,
            allow_blank=False,
            help_text="From the e-mail, with or without its spaces. It works once.",
        )


class CreateAccount(Operation):
    """Send a code by e-mail, with which Confirm email creates the account.

    The response is the same if there is an account with this address: its owner gets another
    e-mail. A deployment where only staff create accounts answers `NotFound`.
    """

    requires_token = False
    errors = (NotFound, TooManyRequests)
    example = {
        "EmailAddress": "new@roombook.example",
        "Password": "calm-harbour-44",
        "FirstName": "Nora",
        "LastName": "Field",
        "CompanyName": "Fieldwork",
        "PhoneNumber": "+1 303 555 0142",
    }

    class Input(ContractSerializer):
        EmailAddress = EmailAddressField("With which the account will sign in.")
        Password = PasswordField(f"{NEW_PASSWORD_HELP}.")
        FirstName = TextField(required=True, allow_blank=False, help_text="The customer's.")
        LastName = TextField(required=True, allow_blank=False, help_text="The customer's.")
        CompanyName = TextField(help_text="The customer's.")
        PhoneNumber = TextField(max_length=50, help_text="The customer's.")

    def perform(self, user: None, *, email_address: str, **fields: str) -> None:
        email_codes.sign_up(
            email=email_address,
            network_address=get_client_address(self.request),
            now=timezone.now(),
            **fields,
        )


class ConfirmEmail(Operation):
    """Create the account that signed up, or give it its new address, and sign the device in."""

    requires_token = False
    returns_secret = True
    errors = (TooManyRequests,)
    example = {"EmailAddress": "new@roombook.example", "Code": EXAMPLE_CODE}

    class Input(ContractSerializer):
        EmailAddress = EmailAddressField("To which the code was sent.")
        Code = CodeField()

    Output = SignIn.Output

    def perform(self, user: None, *, email_address: str, code: str) -> dict[str, object]:
        user_info, token = email_codes.confirm_email(
            email=email_address,
            code=code,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
        return {"user_info": user_info, "token": token}


class RequestPasswordReset(Operation):
    """Send a code by e-mail, with which Reset password sets a new password.

    The response is the same if there is no account with this address; then nothing is sent.
    """

    requires_token = False
    errors = (TooManyRequests,)
    example = {"EmailAddress": "guest@roombook.example"}

    class Input(ContractSerializer):
        EmailAddress = EmailAddressField("With which the account signs in.")

    def perform(self, user: None, *, email_address: str) -> None:
        email_codes.request_password_reset(
            email=email_address,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )


class ResetPassword(Operation):
    """Set a new password with a code, and sign all devices out.

    The code of the notice about a change of the e-mail address also restores the former address.
    """

    requires_token = False
    errors = (TooManyRequests,)
    example = {
        "EmailAddress": "guest@roombook.example",
        "Code": EXAMPLE_CODE,
        "NewPassword": "noisy-harbour-43",
        "ConfirmNewPassword": "noisy-harbour-43",
    }

    class Input(ContractSerializer):
        EmailAddress = EmailAddressField("To which the code was sent.")
        Code = CodeField()
        NewPassword = PasswordField(f"{NEW_PASSWORD_HELP}.")
        ConfirmNewPassword = PasswordField("The new password again.")

    def perform(self, user: None, *, email_address: str, **fields: str) -> None:
        email_codes.reset_password(
            email=email_address,
            network_address=get_client_address(self.request),
            now=timezone.now(),
            **fields,
        )


class ChangeEmail(Operation):
    """Send a code to the new address, with which Confirm email changes the account's address.

    The present address gets a notice with a code that takes the account back. Until the new address
    is confirmed, nothing changes.
    """

    errors = (TooManyRequests,)
    example = {"NewEmailAddress": "demo-2@roombook.example", "Password": "quiet-harbour-42"}

    class Input(ContractSerializer):
        NewEmailAddress = EmailAddressField("With which the account will sign in.")
        Password = PasswordField("The account's password. A wrong one counts as a failed sign-in.")

    def perform(self, user: User, *, new_email_address: str, password: str) -> None:
        email_codes.request_email_change(
            user,
            new_email=new_email_address,
            password=password,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
