"""Who uses the service: accounts, the devices that they are signed in on, and counted tries."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from accounts import emails
from accounts.indexes import PrefixIndex

# Registered here, where Django looks for models.
from accounts.outbox import OutboxMessage  # noqa: F401
from roombook import images


class UserType(models.TextChoices):
    """The contract's UserTypes."""

    ACCOUNT = "Account"
    STAFF = "Staff"
    ADMINISTRATOR = "Administrator"


def canonicalize_email(address: str) -> str:
    """The one form in which an address is stored and looked up: its case never matters."""
    return address.strip().lower()


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        if not email or not email.strip():
            raise ValueError("An account needs an e-mail address.")
        user = self.model(email=canonicalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        fields |= {"is_staff": True, "is_superuser": True}
        return self.create_user(email, password, **fields)

    def get_by_natural_key(self, email: str | None) -> "User":
        return self.get(email=canonicalize_email(email or ""))


class User(AbstractBaseUser, PermissionsMixin):
    """A person with an account: a customer, a member of staff or an administrator."""

    email = models.EmailField("e-mail address", max_length=254, unique=True)
    first_name = models.CharField(max_length=255)
    last_name = models.CharField(max_length=255)
    company_name = models.CharField(max_length=255, blank=True)
    phone_number = models.CharField(max_length=50, blank=True)
    thumbnail = models.ImageField(
        upload_to=images.RandomName("accounts"), validators=[images.validate_image], blank=True
    )
    is_staff = models.BooleanField(
        "staff", default=False, help_text="May sign in to the back office."
    )
    is_active = models.BooleanField(
        "active", default=True, help_text="Take this away instead of deleting an account."
    )
    date_joined = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = ["first_name", "last_name"]

    objects = UserManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                name="user_email_is_unique_in_any_case",
                violation_error_message="There is an account with this e-mail address already.",
            ),
        ]
        indexes = [
            # What staff look people up by, see people.py.
            PrefixIndex(column="first_name", name="user_first_name_begins"),
            PrefixIndex(column="last_name", name="user_last_name_begins"),
            PrefixIndex(column="company_name", name="user_company_name_begins"),
            PrefixIndex(column="phone_number", name="user_phone_number_begins"),
            # The few that staff filter for, among a million.
            models.Index(fields=["email"], condition=Q(is_staff=True), name="user_staff"),
            models.Index(fields=["email"], condition=Q(is_active=False), name="user_switched_off"),
        ]

    def __str__(self) -> str:
        return self.email

    # Mutators

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._password_was_taken_away = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Keep the row; a new password, or none any more, signs every device out and is told to
        the owner with it.

        Django clears `_password` for a mere upgrade of the hash, which signs nobody out.
        """
        self.email = canonicalize_email(self.email)
        locked_out = self._password is not None or self._password_was_taken_away
        if self._state.adding or not locked_out:
            super().save(*args, **kwargs)
        else:
            with transaction.atomic(using=kwargs.get("using")):
                super().save(*args, **kwargs)
                self.tokens.all().delete()
                emails.send_password_changed(
                    self,
                    # Django's own forms and commands save, and none of them tells the time.
                    now=timezone.now(),  # noqa: TID251
                    was_taken_away=self._password_was_taken_away,
                )
        self._password_was_taken_away = False

    # Django's own: the raw password between `set_password` and `save`.
    _password: str | None
    _password_was_taken_away = False

    # Queries and properties

    def get_full_name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()

    def get_short_name(self) -> str:
        return self.first_name

    @property
    def type(self) -> UserType:
        if self.is_superuser:
            return UserType.ADMINISTRATOR
        return UserType.STAFF if self.is_staff else UserType.ACCOUNT

    @property
    def saved_payment_info(self) -> Any:
        """The saved card (payments.SavedCard), or None. Costs a query the first time."""
        return getattr(self, "saved_card", None)


class CenterRole(models.Model):
    """A role of a member of staff at one center (B18).

    A role is a group. Who is a member of the group itself has the role at every center.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="center_roles",
        verbose_name="member of staff",
    )
    center = models.ForeignKey("centers.Center", models.CASCADE, related_name="+")
    group = models.ForeignKey(
        "auth.Group", models.PROTECT, related_name="center_roles", verbose_name="role"
    )

    class Meta:
        verbose_name = "role at a center"
        verbose_name_plural = "roles at centers"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "center", "group"],
                name="center_role_is_given_once",
                violation_error_message="This role at this center is theirs already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} at {self.center}"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def alive(self, now: datetime) -> Self:
        return self.filter(expires_at__gt=now)

    def expired(self, now: datetime) -> Self:
        return self.filter(expires_at__lte=now)


def hash_token_secret(secret: str) -> str:
    """What is stored of a Token. A fast hash is right: 256 random bits cannot be guessed."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


class ApiToken(models.Model):
    """One device that an account is signed in on."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(editable=False, db_index=True)

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

    # Factories

    @classmethod
    def issue(cls, user: User, *, now: datetime) -> str:
        """Sign a device in: the secret goes to the client, only its digest stays here."""
        # Hexadecimal: a Token that began with "-" would be changed by CSV's guard against formulas.
        secret = secrets.token_hex(32)
        cls.objects.create(
            user=user,
            digest=hash_token_secret(secret),
            created_at=now,
            expires_at=now + get_token_idle_lifetime(),
        )
        return secret

    # Mutators

    def renew(self, now: datetime) -> None:
        """Live on after use; writes at most once a day, so that reading stays reading."""
        until = min(now + get_token_idle_lifetime(), self.created_at + get_token_max_lifetime())
        if until - self.expires_at < timedelta(days=1):
            return
        # Conditional, so that of many requests at once only one writes.
        ApiToken.objects.filter(pk=self.pk, expires_at=self.expires_at).update(expires_at=until)
        self.expires_at = until


def get_token_idle_lifetime() -> timedelta:
    return timedelta(days=settings.TOKEN_IDLE_DAYS)


def get_token_max_lifetime() -> timedelta:
    return timedelta(days=settings.TOKEN_MAX_DAYS)


class AttemptWindow(models.Model):
    """How often something was tried since the window opened; see limits.py."""

    scope = models.CharField(max_length=40)
    key = models.CharField(max_length=128)
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "key"], name="attempt_window_is_one_a_scope_and_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}: {self.count}"
