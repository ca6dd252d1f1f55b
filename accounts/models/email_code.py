"""Codes that prove that somebody can read the e-mails to an address (B22.2)."""

import re
from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.crypto import constant_time_compare, salted_hmac

# Wrong codes from the network that requested the code, and from all others together: otherwise
# strangers could end a code that its owner waits for.
MAX_TRIES = 5
MAX_TRIES_ELSEWHERE = 20


class CodePurpose(models.TextChoices):
    SIGN_UP = "sign-up"
    PASSWORD_RESET = "password-reset"
    EMAIL_CHANGE = "email-change"
    # Sent to the former address: it takes the account back, for days and not minutes. Such a code
    # is too long to be guessed, so wrong ones do not use it up.
    REVOCATION = "revocation"


class EmailCodeQuerySet(models.QuerySet["EmailCode"]):
    def open(self, now: datetime) -> Self:
        return self.filter(
            expires_at__gt=now,
            tries__lt=MAX_TRIES,
            tries_elsewhere__lt=MAX_TRIES_ELSEWHERE,
        )


class EmailCode(models.Model):
    """A code that was sent to an address for one purpose. Only a keyed hash of it is stored.

    Without a hash no code fits: it stands for one that was not sent, so that a request writes the
    same rows whether or not there is an account.
    """

    purpose = models.CharField(max_length=20, choices=CodePurpose.choices)
    email = models.EmailField(max_length=254)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="email_codes"
    )
    digest = models.CharField(max_length=64, blank=True, editable=False)
    network = models.CharField(
        max_length=64,
        editable=False,
        help_text="A keyed hash of the network that requested the code.",
    )
    tries = models.PositiveSmallIntegerField(default=0)
    tries_elsewhere = models.PositiveSmallIntegerField(default=0, help_text="From other networks.")
    expires_at = models.DateTimeField(db_index=True)
    new_account = models.JSONField(
        default=dict, help_text="The fields of the account that a confirmed sign-up creates."
    )

    objects = models.Manager.from_queryset(EmailCodeQuerySet)()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(purpose__in=CodePurpose.values), name="email_code_purpose_is_known"
            ),
        ]
        indexes = [models.Index(fields=["email"], name="email_code_by_address")]

    def __str__(self) -> str:
        return f"code {self.pk} ({self.purpose})"

    def set_code(self, code: str) -> None:
        self.digest = self._hash(code)

    def has_code(self, code: str) -> bool:
        """Whether this is the code. Spaces, dashes and case do not matter."""
        return constant_time_compare(self.digest, self._hash(code))

    def _hash(self, code: str) -> str:
        code = re.sub(r"[\s-]", "", code).lower()
        text = f"{self.purpose} {self.email} {code}"
        return salted_hmac("accounts.email-code", text, algorithm="sha256").hexdigest()
