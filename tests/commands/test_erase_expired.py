"""manage.py erase_expired"""

import uuid
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from accounts.models import AttemptWindow, KnownNetwork, OutboxMessage
from payments.models import Payment, StripePayment
from reservations.booking import account_erasure
from reservations.models import Attendee
from reservations.models.status import Status
from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.deliveries import DeliveryState
from roombook.imports.models import Upload
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import NOW, PaymentFactory, ReservationFactory
from tests.gateway_faults import FaultKind, add_fault

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

DAY = timedelta(days=1)
NO_LIMITS = ("EMAIL_DAYS", "AUDIT_LOG_DAYS", "ATTENDEE_DAYS", "DRAFT_DAYS", "BOOKS_YEARS")


def make_old_data(*, days):
    """One of everything that expires, that old, and an e-mail that still waits."""
    then, user = NOW - days * DAY, UserFactory()
    for state in (DeliveryState.SENT, DeliveryState.WAITING):
        is_sent = state == DeliveryState.SENT
        OutboxMessage.objects.create(
            user=user,
            to=user.email,
            kind="test",
            state=state,
            created_at=then,
            sent_at=then if is_sent else None,
            next_attempt_at=None if is_sent else NOW,
        )
    build_entry(user, AuditAction.VIEW, timestamp=then).save()
    build_entry(user, AuditAction.VIEW, timestamp=then, unpublished_event={"Type": "x"}).save()
    for booked_at in (then, None):
        reservation = ReservationFactory(
            user=user,
            start=then - DAY,
            end=then,
            booked_at=booked_at,
            status=Status.COMPLETED if booked_at else Status.EXPIRED,
        )
        Attendee.objects.create(reservation=reservation, name="Ada", email_address="a@b.example")
    PaymentFactory(
        reservation=reservation,
        amount=Decimal(1),
        state="voided",
        card_brand="Visa",
        card_last4="4242",
        reference="pay_1",
        at=then,
    )
    StripePayment.objects.create(key=uuid.uuid4(), intent="pi_1", is_live=False)
    StripePayment.objects.update(created_at=then)
    Upload.objects.create(
        user=user, sheet="rates", file_name="rates.csv", content=b"1", created_at=then
    )


def count_kept():
    """The number of rows, or of rows with a name or card, of each kind that can expire."""
    return {
        "e-mails": OutboxMessage.objects.exclude(state=DeliveryState.WAITING).count(),
        "entries": AuditEntry.objects.filter(
            unpublished_event__isnull=True, action=AuditAction.VIEW
        ).count(),
        "attendees": Attendee.objects.exclude(name="").filter(reservation__booked_at=None).count(),
        "guests": Attendee.objects.exclude(name="").exclude(reservation__booked_at=None).count(),
        "intents": StripePayment.objects.count(),
        "cards": Payment.objects.exclude(card_last4="", reference="").count(),
        "files": Upload.objects.count(),
    }


@pytest.mark.parametrize(
    ("days", "expired"),
    [
        (0.9, set()),
        (2, {"files"}),
        (91, {"files", "attendees"}),
        (366, {"files", "attendees", "e-mails"}),
        (731, {"files", "attendees", "e-mails", "guests"}),
        (1096, {"files", "attendees", "e-mails", "guests", "entries"}),
        (3661, {"files", "attendees", "e-mails", "guests", "entries", "cards", "intents"}),
    ],
)
def test_each_kind_of_data_is_erased_after_its_own_time(days, expired, capsys):
    make_old_data(days=days)

    call_command("erase_expired")
    call_command("erase_expired")

    assert {kind for kind, count in count_kept().items() if not count} == expired
    assert capsys.readouterr().out.endswith("Erased: nothing.\n")
    assert OutboxMessage.objects.filter(state=DeliveryState.WAITING).count() == 1
    # Webhooks have not published it yet.
    assert AuditEntry.objects.exclude(unpublished_event__isnull=True).count() == 1
    assert Attendee.objects.count() == 2


def test_table_that_fails_does_not_stop_the_others():
    make_old_data(days=36_000)

    def time_out(execute, sql, *args):
        if sql.startswith('SELECT "accounts_outboxmessage"'):
            raise OperationalError("canceling statement due to statement timeout")
        return execute(sql, *args)

    with (
        connection.execute_wrapper(time_out),
        pytest.raises(CommandError, match=r"^Not finished: e-mails\. The log says why\.$"),
    ):
        call_command("erase_expired")

    assert {kind for kind, count in count_kept().items() if count} == {"e-mails"}


@pytest.mark.parametrize(
    ("model", "time"), [(AttemptWindow, "since"), (KnownNetwork, "last_sign_in_at")]
)
def test_row_that_is_used_again_meanwhile_is_kept(model, time, capsys):
    then = NOW - 100 * DAY
    AttemptWindow.objects.create(scope="sign-in", key="k", count=5, since=then)
    KnownNetwork.objects.create(user=UserFactory(), digest="d", last_sign_in_at=then)

    def use_again(execute, sql, *args):
        if sql.startswith(f'DELETE FROM "{model._meta.db_table}"'):
            model.objects.update(**{time: NOW})
        return execute(sql, *args)

    with connection.execute_wrapper(use_again):
        call_command("erase_expired")

    assert model.objects.exists()
    assert AttemptWindow.objects.count() + KnownNetwork.objects.count() == 1
    assert capsys.readouterr().out.startswith("Erased: 1 ")


def test_zero_is_for_ever(settings):
    for name in NO_LIMITS:
        setattr(settings, name, 0)
    make_old_data(days=36_000)

    call_command("erase_expired")

    assert {kind for kind, count in count_kept().items() if not count} == {"files"}


def test_erasure_that_is_unfinished_for_a_day_needs_attention(time_machine):
    user = SavedCardFactory().user
    end_fault = add_fault(operation="forget", kind=FaultKind.ERROR)
    account_erasure.erase_account(user.pk, by=None, now=NOW)
    call_command("erase_expired")
    time_machine.move_to(NOW + DAY, tick=False)

    with pytest.raises(CommandError, match=f"Not finished: erasure of account {user.pk}"):
        call_command("erase_expired")

    end_fault()
    call_command("erase_expired")
    assert user.erasure.finished_at == NOW + DAY
