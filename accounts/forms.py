"""Forms of the back office."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from unfold.forms import AuthenticationForm, UserChangeForm, UserCreationForm

from accounts import actions
from accounts.models import User
from roombook.errors import InvalidCredentials, TooManyRequests
from roombook.middleware import client_address


class SignInForm(AuthenticationForm):
    """The admin's door, with the same limits as the API's: there is no second place to guess at."""

    def clean(self) -> dict[str, Any]:
        email = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if email and password:
            try:
                user, _ = actions.prove(
                    email=email,
                    password=password,
                    network_address=client_address(self.request) if self.request else "",
                    now=timezone.now(),  # noqa: TID251 (a form is a border)
                )
            except InvalidCredentials:
                raise self.get_invalid_login_error() from None
            except TooManyRequests as error:
                raise ValidationError(error.message, code="too_many_tries") from None
            self.confirm_login_allowed(user)
            user.backend = "accounts.roles.CenterRoles"
            self.user_cache = user
        return self.cleaned_data


class UserAddForm(UserCreationForm):
    class Meta:
        model = User
        fields = ("email", "first_name", "last_name")


class UserForm(UserChangeForm):
    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, Any] = {}
