"""Validates passwords beyond Django's own rules."""

from typing import Any

from django.core.exceptions import ValidationError

# Hashing takes longer the longer the password is, so the API refuses longer ones first.
MAX_PASSWORD_LENGTH = 128


class MaximumLengthValidator:
    """Refuses passwords that are too long for the API's sign-in."""

    def validate(self, password: str, user: Any = None) -> None:
        if len(password) > MAX_PASSWORD_LENGTH:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password can't have more than {MAX_PASSWORD_LENGTH} characters."
