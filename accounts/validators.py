"""What a password may be, beyond Django's own rules."""

from typing import Any

from django.core.exceptions import ValidationError

# Hashing costs more the more there is to hash, so the API refuses longer ones before it does.
MAX_PASSWORD_LENGTH = 128


class MaximumLengthValidator:
    """No longer than the API lets in, whichever way a password is set."""

    def validate(self, password: str, user: Any = None) -> None:
        if len(password) > MAX_PASSWORD_LENGTH:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password can't have more than {MAX_PASSWORD_LENGTH} characters."
