"""Accounts of customers and staff, and roles at centers."""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.indexes import GinIndex
from django.contrib.sessions.backends.base import SessionBase
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone
from django_otp import DEVICE_ID_SESSION_KEY

from accounts import emails
from accounts.models.account_erasure import NO_ADDRESS_DOMAIN
from accounts.models.search_text import SEARCHED_FIELDS, SearchTextField
from accounts.passwords import normalize_password
from accounts.validators import validate_email_without_card, validate_name, validate_phone_number
from roombook import images
from roombook.db.compiled_queries import RowQuerySet, compiled_query, int_param
from roombook.errors import InvalidRequest, NotSignedIn
from roombook.money import MoneyField
from roombook.texts import CleanedMixin, LineField, clean_line

# --- Accounts of customers and staff -------------------------------------------------------------

NAME_NEEDED = "A name is needed."


class UserType(models.TextChoices):
    """The contract's UserTypes."""

    ACCOUNT = "Account"
    STAFF = "Staff"
    ADMINISTRATOR = "Administrator"


def canonicalize_email(address: str) -> str:
    """The form in which an address is stored and looked up, one for each mailbox.

    It is in lower case, and its domain in the letters of its language (`bücher.example`), by the
    IDNA with which Django sends e-mails. Domains that are not encoded so stay as they are.
    """
    name, at, domain = clean_line(address).lower().rpartition("@")
    with contextlib.suppress(UnicodeError):
        domain = domain.encode("idna").decode("ascii")
        domain = domain.encode("ascii").decode("idna")
    return name + at + domain


class AccountEmailField(CleanedMixin, models.EmailField):
    """The address of an account."""

    clean_value = staticmethod(canonicalize_email)


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

    def lock(self, pk: int) -> "User":
        """The account's current row, locked until the transaction ends."""
        # NO KEY, so that other transactions can still insert rows that refer to the account.
        return self.select_for_update(no_key=True).get(pk=pk)

    def lock_active(self, pk: int) -> None:
        """Lock the account, or raise NotSignedIn if it was erased or disabled meanwhile (B22.9).

        What stores something about an account calls it first, in the same transaction.
        """
        if active_account_for_update.first(user=pk) is None:
            raise NotSignedIn

    def get_by_natural_key(self, email: str | None) -> "User":
        return self.get(email=canonicalize_email(email or ""))


@compiled_query(keep_plan=True)
def active_account_for_update() -> RowQuerySet:
    rows = User.objects.filter(pk=int_param("user"), is_active=True)
    return rows.select_for_update(no_key=True).values_list("pk")


class User(AbstractBaseUser, PermissionsMixin):
    """A person with an account: a customer, a member of staff or an administrator."""

    email = AccountEmailField(
        "e-mail address", max_length=254, unique=True, validators=[validate_email_without_card]
    )
    first_name = LineField(
        max_length=255, validators=[validate_name], error_messages={"blank": NAME_NEEDED}
    )
    last_name = LineField(
        max_length=255, validators=[validate_name], error_messages={"blank": NAME_NEEDED}
    )
    company_name = LineField(max_length=255, blank=True, validators=[validate_name])
    phone_number = LineField(max_length=50, blank=True, validators=[validate_phone_number])
    credit_limit = MoneyField(
        "limit on account",
        default=0,
        validators=[MinValueValidator(0)],
        help_text="How much the customer may owe for bookings on account. 0: none.",
    )
    thumbnail = models.ImageField(
        upload_to=images.RandomName("accounts"), validators=[images.validate_image], blank=True
    )
    search_text = SearchTextField(editable=False, default="")
    is_staff = models.BooleanField(
        "staff", default=False, help_text="May sign in to the back office."
    )
    is_active = models.BooleanField(
        "active", default=True, help_text="Deactivate an account instead of deleting it."
    )
    date_joined = models.DateTimeField(auto_now_add=True)
    second_factor_since = models.DateTimeField("two-step sign-in", null=True, editable=False)
    second_factor_changed_at = models.DateTimeField(null=True, editable=False)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = ["first_name", "last_name"]

    objects = UserManager()

    class Meta:
        # Staff have a model of their own.
        verbose_name = "customer"
        permissions = [
            ("correct_user", "Can correct names and addresses of customers of a center"),
            ("erase_user", "Erase, and export all data"),
        ]
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                name="user_email_is_unique_in_any_case",
                violation_error_message="An account with this e-mail address already exists.",
            ),
        ]
        indexes = [
            # For accounts/user_search.py.
            # On SQLite it is a B-tree, which is read through instead of the larger table.
            GinIndex(fields=["search_text"], opclasses=["gin_trgm_ops"], name="user_search"),
            # For the list of customers.
            models.Index(
                fields=["email"],
                condition=Q(is_staff=False, is_superuser=False),
                name="user_customer",
            ),
            # For the filters of the back office, which select few accounts among a million.
            models.Index(fields=["email"], condition=Q(is_staff=True), name="user_staff"),
            models.Index(fields=["email"], condition=Q(is_active=False), name="user_switched_off"),
        ]

    def __str__(self) -> str:
        return self.known_email or self.get_full_name()

    @property
    def known_email(self) -> str:
        """The e-mail address; empty if the customer has given none (B22.14)."""
        return "" if self.email.endswith(f"@{NO_ADDRESS_DOMAIN}") else self.email

    def require_email(self) -> None:
        """Raise InvalidRequest if the customer has given no e-mail address."""
        if not self.known_email:
            problem = "The customer has no e-mail address. Correct the contact details first."
            raise InvalidRequest({"email": problem})

    # The raw password between `set_password` and `save`; Django's own, private.
    _password: str | None
    _is_password_removed = False

    def set_password(self, raw_password: str | None) -> None:
        super().set_password(None if raw_password is None else normalize_password(raw_password))

    def check_password(self, raw_password: str | None) -> bool:
        return super().check_password(normalize_password(raw_password or ""))

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._is_password_removed = True

    def save(self, *args: Any, using: str | None = None, **kwargs: Any) -> None:
        """Save the account; a changed or removed password also signs out every device and is
        e-mailed to the owner.

        Django resets ``_password`` when it only upgrades the hash, which signs out nobody.
        """
        changed = kwargs.get("update_fields")
        if changed is not None and not set(SEARCHED_FIELDS).isdisjoint(changed):
            kwargs["update_fields"] = {*changed, "search_text"}
        is_password_changed = self._password is not None or self._is_password_removed
        if self._state.adding or not is_password_changed:
            super().save(*args, using=using, **kwargs)
        else:
            with transaction.atomic(using=using):
                super().save(*args, using=using, **kwargs)
                self.tokens.all().delete()
                self.email_codes.all().delete()
                emails.send_password_changed(
                    self.pk,
                    self.email,
                    # Django's own forms and commands call save without a time.
                    now=timezone.now(),  # noqa: TID251
                    is_removed=self._is_password_removed,
                )
        self._is_password_removed = False

    def get_session_auth_hash(self) -> str:
        """Sessions end when the password or the second factor changes."""
        return self._add_second_factor(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        return map(self._add_second_factor, super().get_session_auth_fallback_hash())

    def _add_second_factor(self, session_hash: str) -> str:
        # Not `second_factor_since`: turning it off must not revive the sessions from before.
        changed_at = self.second_factor_changed_at
        return session_hash if changed_at is None else f"{session_hash} {changed_at.timestamp()}"

    def is_second_factor_pending(self, session: SessionBase) -> bool:
        """Whether the session must prove, or set up, a second factor before it may go on."""
        if self.second_factor_since is None:
            is_required: bool = settings.SECOND_FACTOR_REQUIRED
            return is_required
        return DEVICE_ID_SESSION_KEY not in session

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


# --- Accounts of staff, which the back office lists apart from those of customers -----------------


class StaffManager(UserManager):
    def get_queryset(self) -> QuerySet[User]:
        return super().get_queryset().filter(is_staff=True)


class StaffMember(User):
    """An account whose owner may sign in to the back office. Only administrators see these."""

    objects: ClassVar[StaffManager] = StaffManager()

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "member of staff"
        verbose_name_plural = "staff"


# --- Roles of staff at single centers ------------------------------------------------------------


class CenterRole(models.Model):
    """A role of a member of staff at one center (B18).

    A role is a group. Members of the group itself have the role at every center.
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
                violation_error_message="This person already has this role at this center.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} at {self.center}"
