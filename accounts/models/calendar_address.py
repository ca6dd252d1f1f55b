"""The secret address of an account's calendar feed (B24)."""

import secrets

from django.conf import settings
from django.db import models
from django.utils.crypto import salted_hmac

from accounts.models.api_token import hash_token_secret
from accounts.models.user import User
from roombook.db.transactions import in_transaction


class CalendarAddress(models.Model):
    """What is needed to find a feed, and to tell its account the address again.

    The secret in the address is a keyed hash of `salt`, and not stored. The feed is found by the
    hash of the secret, so it can be read even if the key is no longer among SECRET_KEY_FALLBACKS.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="calendar_address",
    )
    salt = models.CharField(max_length=32, editable=False)
    digest = models.CharField(max_length=64, editable=False)

    class Meta:
        constraints = [
            # Not `unique=True`, which would give PostgreSQL a second index for LIKE.
            models.UniqueConstraint(fields=["digest"], name="calendar_address_digest_is_unique"),
        ]

    def __str__(self) -> str:
        return f"calendar address of account {self.pk}"

    @classmethod
    def get_secret(cls, user: User, *, is_revoked: bool = False) -> str:
        """Return the secret, the same at each call; a revoked one is replaced first.

        It is also replaced if its key is no longer known.
        """
        known = None if is_revoked else cls._find_known_secret(user)
        return known or cls._issue_secret(user, is_revoked=is_revoked)

    @classmethod
    def find_account(cls, secret: str) -> int | None:
        """Return the id of the active account whose feed has this secret, if there is one."""
        rows = cls.objects.filter(digest=hash_token_secret(secret), user__is_active=True)
        return rows.values_list("user_id", flat=True).first()

    @classmethod
    @in_transaction
    def _issue_secret(cls, user: User, *, is_revoked: bool) -> str:
        User.objects.lock(user.pk)
        # Another request may have issued one before the lock.
        if not is_revoked and (known := cls._find_known_secret(user)):
            return known
        salt = secrets.token_hex(16)
        secret = build_secret(salt, settings.SECRET_KEY)
        cls.objects.update_or_create(
            user=user, defaults={"salt": salt, "digest": hash_token_secret(secret)}
        )
        return secret

    @classmethod
    def _find_known_secret(cls, user: User) -> str | None:
        address = cls.objects.filter(user=user).first()
        return address._rebuild_secret() if address else None

    def _rebuild_secret(self) -> str | None:
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
            secret = build_secret(self.salt, key)
            if hash_token_secret(secret) == self.digest:
                return secret
        return None


def build_secret(salt: str, key: str) -> str:
    return salted_hmac("accounts.calendar", salt, secret=key, algorithm="sha256").hexdigest()
