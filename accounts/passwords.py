"""How passwords are hashed, and how long they may be."""

from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.exceptions import ValidationError

# Hashing takes longer the longer the password is, so the API refuses longer ones first.
MAX_PASSWORD_LENGTH = 128


class Argon2Hasher(Argon2PasswordHasher):
    """Argon2 with the parameters that OWASP recommends.

    Django's own parameters take 100 MiB and a quarter of a second per sign-in, so that a few dozen
    concurrent sign-ins would exhaust a small server's memory.
    """

    time_cost = 2
    memory_cost = 19456
    parallelism = 1


class MaximumLengthValidator:
    """Refuses passwords that are too long for the API's sign-in."""

    def validate(self, password: str, user: object = None) -> None:
        if len(password) > MAX_PASSWORD_LENGTH:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password can't have more than {MAX_PASSWORD_LENGTH} characters."
