"""All tables with personal data: whose it is, and its export, erasure and expiry (B22.10, B22.11).

docs/privacy.md lists them with their columns, and says why each is stored. The tables are named as
Django names them, because those of other apps cannot be imported here. An erased table always has
its part of the export, or a reason why it has none.
"""

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.db.models import Q, QuerySet

from accounts.limits import KNOWN_NETWORK_LIFETIME, MAX_PERIOD, hash_email
from accounts.models import OutboxMessage, User
from accounts.models.account_erasure import PSEUDONYM_DOMAIN
from accounts.models.outbox_message import EMAIL_CHANGE_KIND
from accounts.models.search_text import build_search_text
from roombook.address import ADDRESS_FIELDS
from roombook.backoffice.models import AuditEntry
from roombook.deliveries import DeliveryState
from roombook.imports.models import MAX_AGE
from roombook.imports.resources import IMPORT_NOTE
from roombook.models import SavedResponse

logger = logging.getLogger(__name__)

BATCH_SIZE = 1000
# For rows that have the time at which they expire.
AT_ONCE = dt.timedelta(0)
# Leap days included, so that nothing is deleted too early.
DAYS_PER_YEAR = 366
# The list whose files name accounts: reservations/resources.py.
ALLOWANCES_SHEET = "allowances"
NO_ATTENDEE = {"name": "", "email_address": "", "company_name": ""}
NO_CARD = {"card_brand": "", "card_last4": "", "message": "", "reference": ""}
NO_ADDRESS = dict.fromkeys(ADDRESS_FIELDS, "") | dict.fromkeys(("latitude", "longitude"))

Values = Mapping[str, object]
EVERY_ROW = Q()

# Why a table has no part of the export.
SECRET = "codes and keys, or hashes of them and of addresses"
OF_STAFF = "what only members of staff have"
REPEATED = "copies of what other tables have, or references to it"


class AtErasure(Enum):
    """What an erasure does with an account's rows, unless it replaces values."""

    STAY = auto()
    DELETE = auto()


@dataclass(frozen=True, slots=True)
class Exported:
    """A table's part of the export: a list of that name, or, without one, where others lead to it.

    `fields` are attributes, separated by spaces: `created_at` is exported as CreatedAt,
    `Code=promo_code.code` as Code, and relations as the parts of their tables. `prefetch` are the
    relations to load, `for_staff` are fields that only staff export (B18). `find` returns the
    exported rows, unless they are all rows of the account.
    """

    name: str
    fields: str
    prefetch: str = ""
    computed: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    for_staff: str = ""
    find: Callable[[User], QuerySet[Any]] | None = None


def get_lifetime(setting: str) -> dt.timedelta:
    """Return for how long rows are kept by a setting in days or years; 0 means forever."""
    unit = DAYS_PER_YEAR if setting.endswith("_YEARS") else 1
    return dt.timedelta(days=getattr(settings, setting) * unit)


@dataclass(frozen=True, slots=True)
class Expiry:
    """The rows that expire a lifetime after the time in a column.

    The lifetime can be the name of a setting, in days or years; then 0 means never.
    `cleared` are the columns that are emptied, with their values; without them, rows are deleted.
    """

    lifetime: str | dt.timedelta
    after: str
    condition: Q = EVERY_ROW
    cleared: Values = field(default_factory=dict)

    def expire(self, label: str, now: dt.datetime) -> int:
        """Delete or clear the expired rows, in batches; return how many they were."""
        lifetime = self.lifetime
        if isinstance(lifetime, str):
            lifetime = get_lifetime(lifetime)
            if not lifetime:
                return 0
        every = apps.get_model(label)._base_manager
        rows = every.filter(self.condition, **{f"{self.after}__lte": now - lifetime})
        if self.cleared:
            # Not those that are empty already.
            rows = rows.exclude(**self.cleared)
        total = 0
        while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
            # Not `every`: a row may have been used again since its key was read.
            chosen = rows.filter(pk__in=batch)
            if self.cleared:
                total += chosen.update(**self.cleared)
            else:
                total += chosen.delete()[1].get(label, 0)
        return total


@dataclass(frozen=True, slots=True)
class Table:
    """What happens to the rows of an account.

    `owner` is the path to it, or finds them; it is empty if they are reached through other rows.
    `at_erasure` can be values that replace those of the rows. `export` is a text for tables that
    are not exported: the reason.
    """

    owner: str | Callable[[User], Q]
    at_erasure: AtErasure | Values | Callable[[User], Values]
    export: Exported | str
    expiries: tuple[Expiry, ...] = ()

    def find_rows(self, label: str, user: User) -> QuerySet[Any]:
        own = self.owner(user) if callable(self.owner) else Q(**{self.owner: user.pk})
        return apps.get_model(label)._base_manager.filter(own)


def erase_rows(user: User) -> None:
    """Do in every table what an erasure does there. The caller is in a transaction.

    `user` is the account as it was before the erasure: rows are found by its address, too.
    """
    for label, table in TABLES.items():
        rule = table.at_erasure
        if rule is AtErasure.DELETE:
            table.find_rows(label, user).delete()
        elif not isinstance(rule, AtErasure):
            values = rule(user) if callable(rule) else rule
            table.find_rows(label, user).update(**values)


def erase_expired_rows(*, now: dt.datetime) -> tuple[dict[str, int], list[str]]:
    """Delete or clear all rows that have expired; an error of one table does not stop the others.

    Returns how many they were, by the name of their table, and the names of tables that failed.
    """
    counts: dict[str, int] = {}
    failed = []
    for label, table in TABLES.items():
        name = str(apps.get_model(label)._meta.verbose_name_plural)
        for expiry in table.expiries:
            try:
                counts[name] = counts.get(name, 0) + expiry.expire(label, now)
            except DatabaseError:
                logger.exception("Expired %s are left. erase_expired tries it again.", name)
                failed.append(name)
    return counts, failed


# --- Rules of single tables ----------------------------------------------------------------------


def _by_user_or_own_email(column: str) -> Callable[[User], Q]:
    """Return what finds the rows of an account, and those of nobody with its address.

    Other accounts may have had the address before.
    """
    return lambda user: Q(user=user) | Q(user=None, **{column: user.email})


def _get_pseudonym(user: User) -> Values:
    """Return what replaces the account's columns. Nobody can sign in with it any more."""
    pseudonym = {
        "email": f"{user.pk}@{PSEUDONYM_DOMAIN}",
        "first_name": "Erased",
        "last_name": f"customer {user.pk}",
    }
    return {
        **pseudonym,
        "company_name": "",
        "phone_number": "",
        "thumbnail": "",
        "search_text": build_search_text(User(**pseudonym)),
        # Not `set_unusable_password`, which tells the owner by e-mail.
        "password": make_password(None),
        "is_active": False,
        "last_login": None,
        "second_factor_since": None,
        "second_factor_changed_at": None,
    }


def _find_sessions(user: User) -> Q:
    """Find the back office's sessions of an account that was one of staff."""
    rows = Session.objects.iterator()
    own = [row.pk for row in rows if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
    return Q(pk__in=own)


def _find_attempts(user: User) -> Q:
    return Q(key=str(user.pk)) | Q(key__startswith=hash_email(user.email))


def _find_exported_emails(user: User) -> QuerySet[OutboxMessage]:
    """Return the e-mails to the account, but no codes for an address that it does not have.

    Those would say whether the address has another account: its owner gets an e-mail of their own.
    """
    rows = OutboxMessage.objects.filter(user=user)
    return rows.exclude(~Q(to=user.email), kind=EMAIL_CHANGE_KIND)


def find_exported_history(user: User) -> QuerySet[AuditEntry]:
    bookings = apps.get_model("reservations.Reservation")
    types = ContentType.objects.get_for_models(User, bookings)
    conditions = (
        Q(content_type=types[User], object_id=user.pk),
        Q(
            content_type=types[bookings],
            object_id__in=bookings._base_manager.filter(user=user).values("pk"),
        ),
        Q(actor=user),
    )
    # Each has an index. Joined by OR, they would scan the whole audit log.
    found = (AuditEntry.objects.filter(each).values("pk") for each in conditions)
    return AuditEntry.objects.filter(pk__in=next(found).union(*found))


def _get_exported_note(row: AuditEntry) -> str:
    # The name of a file is for staff, and may say something about the customers in it.
    return "Imported." if row.note.startswith(IMPORT_NOTE) else row.note


# --- The tables, in the order of the export ------------------------------------------------------

STAY, DELETE = AtErasure.STAY, AtErasure.DELETE

# The path to the account, what an erasure does, the part of the export, expiries.
TABLES: dict[str, Table] = {
    "accounts.User": Table(
        "pk",
        _get_pseudonym,
        Exported(
            "Account",
            "id type EmailAddress=email first_name last_name company_name phone_number thumbnail"
            " CreatedAt=date_joined LastSignInAt=last_login TwoStepSignInSince=second_factor_since",
            computed={
                "HasCalendarAddress": lambda row: hasattr(row, "calendar_address"),
                "SavedCard": lambda row: row.saved_payment_info,
            },
        ),
    ),
    "payments.SavedCard": Table(
        "user",
        {"first_name": "", "last_name": "", "company_name": "", **NO_ADDRESS},
        Exported(
            "",
            "CardType=brand Last4Digits=last4 expiration_date first_name last_name company_name"
            " street1 street2 street3 city state postal_code country SavedAt=created_at",
        ),
    ),
    "centers.Favorite": Table(
        "user", DELETE, Exported("Favorites", "center_id Name=center.name", "center")
    ),
    "reservations.Reservation": Table(
        "user",
        STAY,
        Exported(
            "Reservations",
            "id status Center=room.center.name MeetingRoom=room.name start end"
            " OutsideOpeningHours=hours_override_reason number_of_attendees currency total_cost"
            " Promotion=promo_code.code Partner=partner.name created_at booked_at cancelled_at"
            " checked_in_at line_items price_adjustments refund_override Services=chosen_services"
            " attendees payments receipts",
            "room__center promo_code partner line_items price_adjustments refund_override"
            " chosen_services__service attendees payments__refunds payments__disputes receipts",
        ),
    ),
    "reservations.RefundOverride": Table(
        "reservation__user", STAY, Exported("", "refund at", for_staff="reason")
    ),
    "reservations.Attendee": Table(
        "reservation__user",
        NO_ATTENDEE,
        Exported("", "name email_address company_name"),
        tuple(
            Expiry(days, "reservation__end", Q(reservation__booked_at__isnull=never), NO_ATTENDEE)
            for days, never in (("ATTENDEE_DAYS", False), ("DRAFT_DAYS", True))
        ),
    ),
    "payments.Payment": Table(
        "reservation__user",
        STAY,
        Exported(
            "",
            "purpose state amount CardType=card_brand Last4Digits=card_last4 message created_at"
            " captured_at refunds disputes",
        ),
        (Expiry("BOOKS_YEARS", "created_at", cleared=NO_CARD),),
    ),
    "reservations.Receipt": Table(
        "reservation__user",
        STAY,
        Exported(
            "",
            "number type issued_at total",
            computed={"Buyer": lambda row: row.content.get("buyer")},
        ),
        (Expiry("BOOKS_YEARS", "issued_at", cleared={"content": {}}),),
    ),
    "reservations.Allowance": Table(
        "user",
        STAY,
        Exported(
            "Allowances", "id description kind hours valid_from valid_until entries", "entries"
        ),
    ),
    "reservations.PromoRedemption": Table(
        "user",
        STAY,
        Exported(
            "PromoCodes",
            "Code=promo_code.code reservation_id amount UsedAt=taken_at ReturnedAt=given_back_at",
            "promo_code",
        ),
    ),
    "accounts.ApiToken": Table(
        "user",
        DELETE,
        Exported("Devices", "SignedInAt=created_at last_used_at expires_at"),
        (Expiry(AT_ONCE, "expires_at"),),
    ),
    "accounts.KnownNetwork": Table(
        "user",
        DELETE,
        Exported("Networks", "last_sign_in_at"),
        (Expiry(KNOWN_NETWORK_LIFETIME, "last_sign_in_at"),),
    ),
    "payments.PaymentSetup": Table(
        "user",
        DELETE,
        Exported("PaymentSetups", "state message return_url created_at expires_at"),
    ),
    "accounts.OutboxMessage": Table(
        _by_user_or_own_email("to"),
        DELETE,
        Exported(
            "Emails",
            "to subject Text=text_without_secrets state created_at sent_at",
            find=_find_exported_emails,
        ),
        (Expiry("EMAIL_DAYS", "created_at", ~Q(state=DeliveryState.WAITING)),),
    ),
    "backoffice.AuditEntry": Table(
        "actor",
        {"actor_email": "", "network_address": None},
        Exported(
            "History",
            "At=timestamp Action=get_action_display Object=object_name",
            # It says that staff made a change, and not who of them.
            computed={
                "Fields": lambda row: sorted(row.changes),
                "Note": _get_exported_note,
                "ByStaff": lambda row: bool(row.actor_email),
            },
            find=find_exported_history,
        ),
        (Expiry("AUDIT_LOG_DAYS", "timestamp", Q(unpublished_event__isnull=True)),),
    ),
    "reservations.Note": Table(
        lambda user: Q(customer=user) | Q(reservation__user=user),
        DELETE,
        Exported("Notes", "", for_staff="reservation_id text At=created_at"),
    ),
    # Parts of the rows above, which stay with them.
    **{
        label: Table("", STAY, Exported("", fields))
        for label, fields in (
            ("reservations.LineItem", "description rate total"),
            ("reservations.PriceAdjustment", "amount reason at"),
            ("reservations.ChosenService", "ServiceName=service.name duration_hours quantity"),
            ("payments.Refund", "state amount reason created_at"),
            ("payments.Dispute", "status amount reason opened_at closed_at"),
            ("reservations.AllowanceEntry", "hours reason reservation_id at"),
        )
    },
    "accounts.EmailCode": Table(
        _by_user_or_own_email("email"), DELETE, SECRET, (Expiry(AT_ONCE, "expires_at"),)
    ),
    "accounts.CalendarAddress": Table("user", DELETE, SECRET),
    "accounts.AttemptWindow": Table(_find_attempts, DELETE, SECRET, (Expiry(MAX_PERIOD, "since"),)),
    "roombook.SavedResponse": Table(
        "user", DELETE, REPEATED, (Expiry(SavedResponse.LIFETIME, "created_at"),)
    ),
    "payments.LedgerLine": Table("", STAY, REPEATED),
    "payments.StripePayment": Table("", STAY, REPEATED, (Expiry("BOOKS_YEARS", "created_at"),)),
    "imports.Upload": Table(
        lambda user: Q(user=user) | Q(sheet=ALLOWANCES_SHEET),
        DELETE,
        OF_STAFF,
        (Expiry(MAX_AGE, "created_at"),),
    ),
    "sessions.Session": Table(_find_sessions, DELETE, OF_STAFF, (Expiry(AT_ONCE, "expire_date"),)),
    **{
        label: Table("user", DELETE, OF_STAFF)
        for label in (
            "accounts.CenterRole",
            "accounts.User_groups",
            "accounts.User_user_permissions",
            "admin.LogEntry",
            "otp_static.StaticDevice",
            "otp_totp.TOTPDevice",
        )
    },
}
