"""Everything that is stored about an account, as one JSON document (B22.11).

A large document is not returned at once: its owner gets an e-mail with a link, which writes it in
pieces. So neither needs more memory or statements for a larger account, and no copy is stored.
"""

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.db.models import Q, QuerySet
from django.utils.crypto import constant_time_compare

from accounts import emails
from accounts.models import CalendarAddress, OutboxMessage, User
from accounts.models.outbox_message import EMAIL_CHANGE_KIND, EXPORT_KIND
from centers.models import Favorite
from payments.account_export import describe_card, describe_payment, describe_setup
from payments.models import SavedCard
from reservations.models import Allowance, Note, PromoRedemption, RefundOverride, Reservation
from roombook.backoffice.models import AuditEntry
from roombook.db.transactions import in_transaction
from roombook.images import get_url
from roombook.imports.resources import IMPORT_NOTE
from roombook.naming import get_contract_fields

Fields = dict[str, Any]

# The rows of a list that are read at once, and that a response contains at most.
BATCH_SIZE = 100
MAX_ROWS = 200
LINK_LIFETIME = dt.timedelta(hours=24)
SALT = "reservations.account_export"


def build_export(user: User) -> Fields | None:
    """Return the document, or None if one of its lists has more than MAX_ROWS elements."""
    if any(rows(user)[MAX_ROWS : MAX_ROWS + 1].exists() for rows, _ in LISTS.values()):
        return None
    lists = {name: list(_iterate_list(user, *each)) for name, each in LISTS.items()}
    return {"Account": _describe_account(user), **lists}


def iterate_json(user: User, *, for_staff: bool = False) -> Iterator[str]:
    """Yield the same document as JSON text, in pieces; for staff with what only they see (B18)."""
    yield f'{{"Account":{_encode(_describe_account(user))}'
    lists = STAFF_LISTS if for_staff else LISTS
    for name in lists:
        yield f',"{name}":['
        for index, element in enumerate(_iterate_list(user, *lists[name])):
            yield f"{',' if index else ''}{_encode(element)}"
        yield "]"
    yield "}"


@in_transaction
def send_link(user: User, build_url: Callable[[str], str], *, now: dt.datetime) -> None:
    """E-mail the account's owner a link to the document. `build_url` makes a secret a URL."""
    service = emails.get_service_name()
    emails.enqueue_email(
        user_id=user.pk,
        to=user.email,
        kind=EXPORT_KIND,
        about=f"account {user.pk}",
        heading=f"Your data at {service}",
        paragraphs=[
            f"You requested everything that {service} stores about you. You can download it for 24"
            " hours, until you change your password:",
            build_url(signing.dumps([user.pk, user.get_session_auth_hash()], salt=SALT)),
            "If you did not ask for it, change your password.",
        ],
        expires_at=now + LINK_LIFETIME,
        now=now,
    )


def find_account(secret: str) -> User | None:
    """Return the active account that was sent this link, unless the link has expired."""
    try:
        pk, auth_hash = signing.loads(secret, salt=SALT, max_age=LINK_LIFETIME)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=pk, is_active=True).first()
    # A change of the password, and an erasure, end the link.
    if user is None or not constant_time_compare(auth_hash, user.get_session_auth_hash()):
        return None
    return user


# --- The document --------------------------------------------------------------------------------


def _describe_account(user: User) -> Fields:
    card = SavedCard.objects.filter(user=user).first()
    return _omit_empty(
        {
            "Id": user.pk,
            "Type": user.type,
            "EmailAddress": user.email,
            **get_contract_fields(user, "first_name", "last_name", "company_name", "phone_number"),
            "Thumbnail": get_url(user.thumbnail.name or ""),
            "CreatedAt": user.date_joined,
            "LastSignInAt": user.last_login,
            "TwoStepSignInSince": user.second_factor_since,
            "HasCalendarAddress": CalendarAddress.objects.filter(user=user).exists(),
            "SavedCard": card and describe_card(card),
        }
    )


def _describe_reservation(row: Reservation) -> Fields:
    return {
        "Id": row.pk,
        "Status": row.status,
        "Center": row.room.center.name,
        "MeetingRoom": row.room.name,
        **get_contract_fields(row, "start", "end"),
        "OutsideOpeningHours": row.hours_override_reason,
        **get_contract_fields(row, "number_of_attendees", "currency", "total_cost"),
        "Promotion": row.promo_code and row.promo_code.code,
        "Partner": row.partner and row.partner.name,
        **get_contract_fields(row, "created_at", "booked_at", "cancelled_at", "checked_in_at"),
        "LineItems": [
            get_contract_fields(each, "description", "rate", "total")
            for each in row.line_items.all()
        ],
        "PriceAdjustments": [
            get_contract_fields(each, "amount", "reason", "at")
            for each in row.price_adjustments.all()
        ],
        "RefundOverride": _describe_override(row),
        "Services": [
            {
                "ServiceName": each.service.name,
                **get_contract_fields(each, "duration_hours", "quantity"),
            }
            for each in row.chosen_services.all()
        ],
        "Attendees": [
            get_contract_fields(each, "name", "email_address", "company_name")
            for each in row.attendees.all()
        ],
        "Payments": [describe_payment(each) for each in row.payments.all()],
        "Receipts": [
            {
                **get_contract_fields(each, "number", "type", "issued_at", "total"),
                "Buyer": each.content.get("buyer"),
            }
            for each in row.receipts.all()
        ],
    }


def _describe_override(row: Reservation) -> Fields | None:
    override: RefundOverride | None = getattr(row, "refund_override", None)
    if override is None:
        return None
    return get_contract_fields(override, "refund", "at")


def _describe_for_staff(row: Reservation) -> Fields:
    """Return a reservation with the reason of its refund, which the customer does not see (B18)."""
    fields = _describe_reservation(row)
    if fields["RefundOverride"]:
        fields["RefundOverride"]["Reason"] = row.refund_override.reason
    return fields


def _find_reservations(user: User) -> QuerySet[Reservation]:
    rows = Reservation.objects.for_user(user)
    return rows.select_related(
        "room__center", "promo_code", "partner", "refund_override"
    ).prefetch_related(
        "line_items",
        "price_adjustments",
        "chosen_services__service",
        "attendees",
        "payments__refunds",
        "payments__disputes",
        "receipts",
    )


def _describe_allowance(row: Allowance) -> Fields:
    return {
        **get_contract_fields(
            row, "id", "description", "kind", "hours", "valid_from", "valid_until"
        ),
        "Entries": [
            get_contract_fields(each, "hours", "reason", "reservation_id", "at")
            for each in row.entries.all()
        ],
    }


def _find_emails(user: User) -> QuerySet[OutboxMessage]:
    """Return the e-mails to the account, but no codes for an address that it does not have.

    Those would say whether the address has another account: its owner gets an e-mail of their own.
    """
    return OutboxMessage.objects.filter(user=user).exclude(
        ~Q(to=user.email), kind=EMAIL_CHANGE_KIND
    )


def _describe_email(row: OutboxMessage) -> Fields:
    return {
        **get_contract_fields(row, "to", "subject"),
        # Without the links and codes that open the account.
        "Text": "" if row.is_secret else row.text,
        **get_contract_fields(row, "state", "created_at", "sent_at"),
    }


def _find_history(user: User) -> QuerySet[AuditEntry]:
    accounts, bookings = (ContentType.objects.get_for_model(each) for each in (User, Reservation))
    own = Reservation.objects.for_user(user).values("pk")
    conditions = (
        Q(content_type=accounts, object_id=user.pk),
        Q(content_type=bookings, object_id__in=own),
        Q(actor=user),
    )
    # Each has an index. Joined by OR, they would scan the whole audit log.
    found = (AuditEntry.objects.filter(each).values("pk") for each in conditions)
    return AuditEntry.objects.filter(pk__in=next(found).union(*found))


def _describe_entry(row: AuditEntry) -> Fields:
    """Return an entry of the audit log. It says that staff made a change, and not who of them."""
    return {
        "At": row.timestamp,
        "Action": row.get_action_display(),
        "Object": row.object_name,
        "Fields": sorted(row.changes),
        # The name of a file is for staff, and may say something about the customers in it.
        "Note": "Imported." if row.note.startswith(IMPORT_NOTE) else row.note,
        "ByStaff": bool(row.actor_email),
    }


Lists = dict[str, tuple[Callable[[User], QuerySet[Any]], Callable[[Any], Fields]]]

LISTS: Lists = {
    "Favorites": (
        lambda user: Favorite.objects.filter(user=user).select_related("center"),
        lambda row: {"CenterId": row.center_id, "Name": row.center.name},
    ),
    "Reservations": (_find_reservations, _describe_reservation),
    "Allowances": (
        lambda user: Allowance.objects.filter(user=user).prefetch_related("entries"),
        _describe_allowance,
    ),
    "PromoCodes": (
        lambda user: PromoRedemption.objects.filter(user=user).select_related("promo_code"),
        lambda row: {
            "Code": row.promo_code.code,
            **get_contract_fields(row, "reservation_id", "amount"),
            "UsedAt": row.taken_at,
            "ReturnedAt": row.given_back_at,
        },
    ),
    "Devices": (
        lambda user: user.tokens.all(),
        lambda row: {
            "SignedInAt": row.created_at,
            **get_contract_fields(row, "last_used_at", "expires_at"),
        },
    ),
    "Networks": (
        lambda user: user.known_networks.all(),
        lambda row: get_contract_fields(row, "last_sign_in_at"),
    ),
    "PaymentSetups": (lambda user: user.payment_setups.all(), describe_setup),
    "Emails": (_find_emails, _describe_email),
    "History": (_find_history, _describe_entry),
}
STAFF_LISTS: Lists = {
    **LISTS,
    "Reservations": (_find_reservations, _describe_for_staff),
    "Notes": (
        lambda user: Note.objects.filter(Q(customer=user) | Q(reservation__user=user)),
        lambda row: {"ReservationId": row.reservation_id, "Text": row.text, "At": row.created_at},
    ),
}


def _iterate_list(
    user: User,
    find_rows: Callable[[User], QuerySet[Any]],
    describe: Callable[[Any], Fields],
) -> Iterator[Fields]:
    """Yield the elements of a list in the order of their ids; each batch is a few statements."""
    rows, last = find_rows(user).order_by("pk"), 0
    while batch := list(rows.filter(pk__gt=last)[:BATCH_SIZE]):
        for row in batch:
            yield _omit_empty(describe(row))
        last = batch[-1].pk
        if len(batch) < BATCH_SIZE:
            return


def _omit_empty(value: Any) -> Any:
    """Return the value as JSON has it, without fields that have no value (B2.1, B2.2)."""
    match value:
        case dict():
            fields = {name: _omit_empty(each) for name, each in value.items()}
            return {name: each for name, each in fields.items() if each not in (None, "")}
        case list():
            return [_omit_empty(each) for each in value]
        case Decimal():
            return float(value)
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat(timespec="seconds")
        case dt.date():
            return value.isoformat()
    return value


def _encode(value: Fields) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
