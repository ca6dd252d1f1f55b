"""API tokens: the devices that an account is signed in on."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models.user import User

LAST_USE_PRECISION = timedelta(hours=1)


def hash_token_secret(secret: str) -> str:
    """The digest that is stored. A fast hash is enough: 256 random bits cannot be guessed."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def get_token_idle_lifetime() -> timedelta:
    return timedelta(days=settings.TOKEN_IDLE_DAYS)


def get_token_max_lifetime() -> timedelta:
    return timedelta(days=settings.TOKEN_MAX_DAYS)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def unexpired(self, now: datetime) -> Self:
        """Return the tokens that are valid, the last used first."""
        return self.filter(expires_at__gt=now).order_by("-last_used_at", "-pk")


class ApiToken(models.Model):
    """One device that an account is signed in on."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(editable=False, db_index=True)
    # Exact to LAST_USE_PRECISION.
    last_used_at = models.DateTimeField(editable=False)

    objects = models.Manager.from_queryset(ApiTokenQuerySet)()

    class Meta:
        constraints = [
            # Not `unique=True`, which would give PostgreSQL a second index for LIKE.
            models.UniqueConstraint(fields=["digest"], name="api_token_digest_is_unique"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=models.F("created_at")),
                name="api_token_expires_after_it_was_made",
            ),
        ]

    def __str__(self) -> str:
        return f"token {self.pk}"

    @classmethod
    def issue(cls, user: User, *, now: datetime) -> str:
        """Create a token and return its secret, which only the client keeps.

        If the account has TOKENS_MAX tokens already, the one that was unused for the longest time
        is deleted. The caller has locked the account.
        """
        # Hexadecimal, because CSV output changes texts that start with "-" (formula guard).
        secret = secrets.token_hex(32)
        cls.objects.create(
            user=user,
            digest=hash_token_secret(secret),
            created_at=now,
            expires_at=now + get_token_idle_lifetime(),
            last_used_at=now,
        )
        surplus = user.tokens.unexpired(now).values_list("pk", flat=True)[settings.TOKENS_MAX :]
        user.tokens.filter(pk__in=list(surplus)).delete()
        return secret

    def renew(self, now: datetime) -> None:
        """Record the use and extend the expiry, at most once an hour: reads rarely write."""
        if now - self.last_used_at < LAST_USE_PRECISION:
            return
        expires_at = min(
            now + get_token_idle_lifetime(), self.created_at + get_token_max_lifetime()
        )
        # Conditional, so that only one of several concurrent requests writes.
        ApiToken.objects.filter(pk=self.pk, last_used_at=self.last_used_at).update(
            expires_at=expires_at, last_used_at=now
        )
        self.expires_at, self.last_used_at = expires_at, now
