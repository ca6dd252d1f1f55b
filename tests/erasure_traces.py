"""An account whose every personal value is unique, and the search for them after its erasure."""

import subprocess
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.files.base import ContentFile
from django.db import connection
from django.utils import timezone
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import limits
from accounts.limits import PROMO_CODE, SIGN_IN_BY_EMAIL, SignInAttempts, hash_email
from accounts.models import (
    CalendarAddress,
    CenterRole,
    EmailCode,
    OutboxMessage,
    User,
)
from accounts.models.tokens import CodePurpose
from payments.gateways.sandbox_models import SandboxCard
from payments.models import Payment, PaymentSetup, PaymentState
from reservations.models import Attendee, Note, Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.deliveries import DeliveryState
from roombook.imports.models import Upload
from roombook.models import SavedResponse
from tests.factories_people import SavedCardFactory
from tests.pg_plugin import find_programs
from tests.world import World

EMAIL = "qwertine.zyx@leaving.example"
PICTURE = b"the picture of Qwertine"
CARD_ADDRESS = {"street1": "77 Xylophone Way", "city": "Quuxville", "postal_code": "Q1X 9Z9"}
PERSONAL_VALUES = [
    *(EMAIL, "Qwertine", "Zyxwell", "Vexcorp", "+1 999 888 7766", "19998887766"),
    *("Mathilde Cardholder", *CARD_ADDRESS.values()),
    *("Guest Ygritte", "ygritte@guest.example", "Guestcorp", PICTURE.decode(), "198.51.100.77"),
]
# Tables whose rows stay, and refer to the account by its pseudonym.
STAYING = {
    "accounts_accounterasure",
    "backoffice_auditentry",
    "reservations_allowance",
    "reservations_promoredemption",
    "reservations_reservation",
}


def make_leaving_account(world: World) -> User:
    """Let Ada be an account with rows in every registered table, and without open bookings."""
    user, now = world.ada, timezone.now()
    Reservation.objects.filter(user=user, status__in=HOLDING_STATUSES).update(
        status=Status.COMPLETED, holds_slot=False, booked_at=now
    )
    Payment.objects.filter(reservation__user=user).update(
        state=PaymentState.VOIDED, captured_at=None, closed_at=now
    )
    user.email, user.first_name, user.last_name = EMAIL, "Qwertine", "Zyxwell"
    user.company_name, user.phone_number = "Vexcorp", "+1 999 888 7766"
    user.thumbnail.save("portrait.png", ContentFile(PICTURE), save=False)
    user.save()
    user.saved_card.delete()
    card = SavedCardFactory(user=user, first_name="Mathilde Cardholder", **CARD_ADDRESS)
    SandboxCard.objects.filter(reference=card.reference).update(customer=str(user.pk))
    Attendee.objects.filter(reservation__user=user).update(
        name="Guest Ygritte", email_address="ygritte@guest.example", company_name="Guestcorp"
    )
    for state in DeliveryState.values:
        OutboxMessage.objects.create(
            user=user,
            to=EMAIL,
            kind="confirmed",
            subject="Dear Qwertine",
            text="Dear Qwertine Zyxwell",
            state=state,
            created_at=now,
            next_attempt_at=now if state == DeliveryState.WAITING else None,
            sent_at=now if state == DeliveryState.SENT else None,
        )
    SignInAttempts(EMAIL, "198.51.100.77").record_success(user, now)
    SIGN_IN_BY_EMAIL.attempt(f"{hash_email(EMAIL)} net", now=now)
    PROMO_CODE.attempt(user.pk, now=now)
    SavedResponse.objects.create(
        user=user, operation="Test", key_digest="1", body_digest="2", content=EMAIL, created_at=now
    )
    Upload.objects.create(
        user=world.bob,
        sheet="allowances",
        file_name="a.csv",
        content=EMAIL.encode(),
        created_at=now,
    )
    Upload.objects.create(
        user=user, sheet="centers", file_name="b.csv", content=b"1", created_at=now
    )
    EmailCode.objects.create(
        purpose=CodePurpose.SIGN_UP, email=EMAIL, expires_at=now, new_account={"name": "Qwertine"}
    )
    OutboxMessage.objects.create(
        to=EMAIL, kind="sign-up code", state=DeliveryState.FAILED, created_at=now
    )
    CalendarAddress.get_secret(user)
    PaymentSetup.objects.create(user=user, gateway="sandbox", created_at=now, expires_at=now)
    Note.objects.create(
        reservation=Reservation.objects.filter(user=user).first(),
        text="Qwertine called",
        author=world.bob,
        created_at=now,
    )
    make_former_member_of_staff(user, world)
    return user


def make_former_member_of_staff(user: User, world: World) -> None:
    group = Group.objects.all()[0]
    users = ContentType.objects.get_for_model(User)
    user.groups.add(group)
    user.user_permissions.add(group.permissions.first())
    CenterRole.objects.create(user=user, center=world.center, group=group)
    TOTPDevice.objects.create(user=user, name="Qwertine's phone")
    StaticDevice.objects.create(user=user, name="codes").token_set.create(token="recovery")
    LogEntry.objects.create(
        user=user, content_type=users, object_id="1", object_repr=EMAIL, action_flag=CHANGE
    )
    AuditEntry.objects.create(
        action=AuditAction.VIEW,
        content_type=users,
        object_id=world.bob.pk,
        object_name="customer",
        actor=user,
        actor_email=EMAIL,
        network_address="198.51.100.77",
    )
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session.save()


def find_traces(user_id: int, *, staying: set[str] = STAYING, logs: str = "") -> set[str]:
    """Search every table, the media and the logs; return where something was found."""
    values = [*PERSONAL_VALUES, hash_email(EMAIL)]
    found = {"logs"} if any(value in logs for value in values) else set()
    for name, rows in dump_database().items():
        text = repr(rows)
        found |= {f"{name}: {value}" for value in values if value in text}
    for path in Path(settings.MEDIA_ROOT).rglob("*"):
        if path.is_file() and PICTURE in path.read_bytes():
            found.add("media")
    for session in Session.objects.all():
        if session.get_decoded().get("_auth_user_id") == str(user_id):
            found.add("session")
    if limits.AttemptWindow.objects.filter(key=str(user_id)).exists():
        found.add("attempts")
    return found | find_references(user_id, staying=staying)


def find_traces_in_pg_dump() -> set[str]:
    """Search the file that `pg_dump` writes, as a backup has it; bytes are hexadecimal there."""
    folder = find_programs()
    assert folder is not None
    database = connection.settings_dict
    parameters = {
        "PGHOST": database["HOST"],
        "PGPORT": database["PORT"],
        "PGUSER": database["USER"],
        "PGPASSWORD": database["PASSWORD"],
        "PGDATABASE": database["NAME"],
    }
    environment = {name: str(value) for name, value in parameters.items() if value}
    run = subprocess.run(
        [folder / "pg_dump"], env=environment, check=True, capture_output=True, text=True
    )
    values = [*PERSONAL_VALUES, hash_email(EMAIL)]
    return {value for value in values if value in run.stdout or value.encode().hex() in run.stdout}


def dump_database() -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables, also of those without a model; bytes as text."""
    dump = {}
    with connection.cursor() as cursor:
        for name in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(name)}")
            dump[name] = [
                tuple(
                    bytes(value).decode("latin-1")
                    if isinstance(value, bytes | memoryview)
                    else value
                    for value in row
                )
                for row in cursor.fetchall()
            ]
    return dump


def find_references(user_id: int, *, staying: set[str]) -> set[str]:
    """Return the tables, other than those that stay, with rows that refer to the account."""
    return {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.concrete_fields
        if field.related_model is User
        and model._meta.db_table not in staying
        and model._base_manager.filter(**{field.name: user_id}).exists()
    }
