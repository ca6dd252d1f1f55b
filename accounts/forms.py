"""Forms of the back office for signing in, passwords and accounts."""

from django.core.exceptions import ValidationError
from django.utils import timezone
from unfold.forms import (
    AdminOwnPasswordChangeForm,
    AuthenticationForm,
    UserChangeForm,
    UserCreationForm,
)

from accounts.limits import SignInAttempts
from accounts.models import User
from accounts.sign_in import verify_credentials
from roombook.errors import InvalidCredentials, TooManyRequests
from roombook.middleware import get_client_address


class SignInForm(AuthenticationForm):
    """Signs staff in, with the same rate limits as the API."""

    def clean(self) -> dict[str, object]:
        email = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if email and password:
            network_address = get_client_address(self.request)
            now = timezone.now()  # noqa: TID251 (a form is a boundary)
            try:
                user, _ = verify_credentials(
                    email=email, password=password, network_address=network_address, now=now
                )
            except InvalidCredentials:
                raise self.get_invalid_login_error() from None
            except TooManyRequests as error:
                raise ValidationError(error.message, code="too_many_attempts") from None
            self.confirm_login_allowed(user)
            SignInAttempts(email, network_address).record_right_password(user, now)
            user.backend = "accounts.roles.CenterRoleBackend"
            self.user_cache = user
        return self.cleaned_data


class OwnPasswordChangeForm(AdminOwnPasswordChangeForm):
    """Changes the user's own password.

    A wrong old password counts as a failed sign-in, so that guesses at an unattended desk are
    limited too.
    """

    def __init__(self, *args: object, network_address: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.attempts = SignInAttempts(self.user.email, network_address)

    def clean_old_password(self) -> str:
        now = timezone.now()  # noqa: TID251 (a form is a boundary)
        try:
            self.attempts.check(now)
            try:
                old_password: str = super().clean_old_password()
            except ValidationError:
                self.attempts.count(now)
                raise
            # Parallel attempts may have filled the window: then it came too late, too.
            self.attempts.check(now)
        except TooManyRequests as error:
            raise ValidationError(error.message, code="too_many_attempts") from None
        return old_password


class UserAddForm(UserCreationForm):
    class Meta:
        model = User
        fields = ("email", "first_name", "last_name")


class UserEditForm(UserChangeForm):
    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, type] = {}
