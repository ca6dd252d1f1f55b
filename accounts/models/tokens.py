"""What opens an account: tokens of its devices, codes by e-mail, the address of its calendar."""

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models.user import User
from roombook.db.transactions import in_transaction

# --- API tokens ----------------------------------------------------------------------------------

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


# --- Codes that prove that somebody reads the e-mails to an address (B22.2) ----------------------

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


# --- The secret address of an account's calendar feed (B24) --------------------------------------


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
        User.objects.lock_active(user.pk)
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
