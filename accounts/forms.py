"""Forms of the back office."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from unfold.forms import (
    AdminOwnPasswordChangeForm,
    AuthenticationForm,
    UserChangeForm,
    UserCreationForm,
)

from accounts import actions
from accounts.models import User
from roombook.errors import InvalidCredentials, TooManyRequests
from roombook.middleware import get_client_address


class SignInForm(AuthenticationForm):
    """The admin's door, with the same limits as the API's: there is no second place to guess at."""

    def clean(self) -> dict[str, Any]:
        email = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if email and password:
            try:
                user, _ = actions.verify_credentials(
                    email=email,
                    password=password,
                    network_address=get_client_address(self.request) if self.request else "",
                    now=timezone.now(),  # noqa: TID251 (a form is a border)
                )
            except InvalidCredentials:
                raise self.get_invalid_login_error() from None
            except TooManyRequests as error:
                raise ValidationError(error.message, code="too_many_tries") from None
            self.confirm_login_allowed(user)
            user.backend = "accounts.roles.CenterRoleBackend"
            self.user_cache = user
        return self.cleaned_data


class OwnPasswordChangeForm(AdminOwnPasswordChangeForm):
    """Staff's own new password. A wrong old one counts as a failed sign-in: an unlocked desk is no
    better place to guess it."""

    def __init__(self, *args: Any, network_address: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tries = actions.SignInAttempts(self.user.email, network_address)

    def clean_old_password(self) -> str:
        now = timezone.now()  # noqa: TID251 (a form is a border)
        try:
            self.tries.check(now)
            try:
                old: str = super().clean_old_password()
            except ValidationError:
                self.tries.count(now)
                raise
        except TooManyRequests as error:
            raise ValidationError(error.message, code="too_many_tries") from None
        return old


class UserAddForm(UserCreationForm):
    class Meta:
        model = User
        fields = ("email", "first_name", "last_name")


class UserEditForm(UserChangeForm):
    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, Any] = {}
