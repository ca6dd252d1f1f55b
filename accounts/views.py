"""The operations on the signed-in account."""

from typing import cast

from django.utils import timezone

from accounts import profile, sign_in
from accounts.models import ApiToken, User
from accounts.passwords import MAX_PASSWORD_LENGTH
from accounts.serializers import UserInfo
from roombook.api.fields import TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.middleware import get_client_address


class PasswordField(TextField):
    """A password: kept exactly as sent, spaces included."""

    def __init__(self) -> None:
        super().__init__(
            required=True, allow_blank=False, trim=False, max_length=MAX_PASSWORD_LENGTH
        )


class SignIn(Operation):
    """Sign a device in and return the Token that all other requests carry."""

    requires_token = False
    returns_secret = True

    class Input(ContractSerializer):
        EmailAddress = TextField(required=True, allow_blank=False)
        Password = PasswordField()

    class Output(ContractSerializer):
        UserInfo = UserInfo()
        Token = TextField()

    def perform(self, user: None, *, email_address: str, password: str) -> dict[str, object]:
        user_info, token = sign_in.sign_in(
            email=email_address,
            password=password,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
        return {"user_info": user_info, "token": token}


class UpdateAccountInfo(Operation):
    """Change names, company and phone number."""

    class Input(ContractSerializer):
        NewFirstName = TextField()
        NewLastName = TextField()
        NewCompanyName = TextField()
        NewPhoneNumber = TextField(max_length=50)

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User, **new: str) -> dict[str, object]:
        return {"updated_user_info": profile.update_profile(user, **new)}


class RemoveAccountThumbnail(Operation):
    """Remove the account's picture."""

    class Output(ContractSerializer):
        UpdatedUserInfo = UserInfo()

    def perform(self, user: User) -> dict[str, object]:
        return {"updated_user_info": profile.remove_thumbnail(user)}


class ChangePassword(Operation):
    """Change the password and sign all other devices out."""

    class Input(ContractSerializer):
        CurrentPassword = PasswordField()
        NewPassword = PasswordField()
        ConfirmNewPassword = PasswordField()

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


class SignOut(Operation):
    """Sign this device out: its Token becomes invalid."""

    def perform(self, user: User) -> None:
        cast("ApiToken", self.request.auth).delete()
