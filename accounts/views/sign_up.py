"""The operations by which customers sign up, reset passwords and change their e-mail address."""

from django.utils import timezone

from accounts import email_codes
from accounts.models import User
from accounts.serializers import PasswordField
from accounts.views.account import NEW_PASSWORD_HELP, SignIn
from roombook.api.fields import TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import NotFound, TooManyRequests
from roombook.middleware import get_client_address

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
