"""POST /api/account/delete"""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.files.base import ContentFile
from django.db import OperationalError
from django.test import Client

from accounts import erasure
from accounts.models import (
    AccountErasure,
    ApiToken,
    CodePurpose,
    EmailCode,
    OutboxMessage,
    User,
)
from accounts.models.user import UserManager
from payments.gateways.sandbox_models import SandboxCard
from payments.ledger import posting as ledger
from payments.ledger.accounts import EventKind
from payments.models import Dispute, Payment, Refund, RefundState, SavedCard
from reservations.booking import account_erasure, drafts
from reservations.models import Attendee, Reservation
from reservations.models.status import Status
from roombook.api.operations import Operation, TwoStepOperation
from roombook.backoffice.models import AuditEntry
from tests.concurrency import run_concurrently
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    SavedCardFactory,
    StaffFactory,
    UserFactory,
    issue_token,
    make_email_code,
)
from tests.factories_reservations import (
    CARD,
    HOUR,
    NOW,
    START,
    PaymentFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.gateway_faults import FaultKind, add_fault
from tests.http import post
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/account/delete"


def delete(client, token, password=PASSWORD):
    return post(client, PATH, {"Token": token, "Password": password})


def get_refusal(response):
    return refused(response, 409, "AccountInUse")["Message"]


def test_delete_erases_the_account_and_keeps_its_bookings_under_a_pseudonym(client, ada, token):
    SavedCardFactory(user=ada)
    SandboxCard.objects.create(
        reference="orphan", customer=str(ada.pk), outcome="succeeds", brand="Visa", last4="1111"
    )
    others = SavedCardFactory(stored__customer="another")
    other_device = issue_token(ada)
    booking, draft = make_booking(ada, make_room()), make_draft(ada, make_room())
    of_others = ReservationFactory()
    Attendee.objects.create(reservation=of_others, name="Ada", email_address=ada.email)
    Reservation.objects.filter(pk=booking.pk).update(status=Status.COMPLETED, holds_slot=False)
    before = (booking.total_cost, booking.line_items.count(), booking.payments.count())

    response = delete(client, token)

    assert (response.status_code, response.json()) == (200, {"Success": True})
    for each in (token, other_device):
        assert post(client, "/api/sign-out", {"Token": each}).status_code == 401
    erased = User.objects.get(pk=ada.pk)
    assert erased.email == f"{ada.pk}@erased.invalid"
    assert erased.get_full_name() == f"Erased customer {ada.pk}"
    assert not erased.is_active
    assert not erased.has_usable_password()
    assert ApiToken.objects.count() == 0
    assert SavedCard.objects.get() == others
    assert SandboxCard.objects.get().reference == others.reference
    entry = AuditEntry.objects.get(note="The account was erased.")
    assert (entry.actor, entry.object_name) == (erased, f"customer {ada.pk}")
    assert entry.changes == {}
    stays = Reservation.objects.get(pk=booking.pk)
    assert before == (stays.total_cost, stays.line_items.count(), stays.payments.count())
    assert set(stays.attendees.values_list("name", "email_address")) == {("", "")}
    draft.refresh_from_db()
    assert (draft.status, draft.holds_slot) == (Status.CANCELLED, False)
    # They belong to another customer.
    assert of_others.attendees.get().email_address == ada.email
    # The address can be used again.
    assert UserFactory(email=ada.email).pk != ada.pk


@pytest.mark.parametrize("status", [Status.PENDING, Status.CONFIRMED, Status.PROCESSING])
def test_account_with_a_booking_ahead_is_in_use(client, ada, token, status):
    draft = make_draft(ada, make_room())
    ReservationFactory(user=ada, status=status)

    assert get_refusal(delete(client, token)) == account_erasure.BOOKINGS_AHEAD
    draft.refresh_from_db()
    assert draft.status == Status.NEW


def test_account_is_in_use_while_money_is_in_doubt_owed_or_contested(client, ada, token):
    reservation = ReservationFactory(user=ada, status=Status.COMPLETED, total_cost=100)
    payment = PaymentFactory(reservation=reservation, amount=Decimal(100), state="started")
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    Payment.objects.update(state="authorized", authorized_at=NOW, counts=True)
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    Payment.objects.update(state="captured", captured_at=NOW)

    refund = Refund.objects.create(payment=payment, amount=Decimal(10), created_at=NOW)
    ledger.post(reservation.pk, EventKind.PROMISED, now=NOW)
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    Refund.objects.update(state=RefundState.REFUSED, done_at=NOW)
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    refund.delete()
    ledger.post(reservation.pk, EventKind.PROMISED, now=NOW)

    Payment.objects.update(counts=False)
    ledger.post(reservation.pk, EventKind.PAID, now=NOW)
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    Payment.objects.update(counts=True)
    ledger.post(reservation.pk, EventKind.PAID, now=NOW)

    Dispute.objects.create(payment=payment, amount=100, currency="USD", opened_at=NOW)
    assert get_refusal(delete(client, token)) == account_erasure.MONEY_OPEN
    Dispute.objects.update(closed_at=NOW)
    assert delete(client, token).status_code == 200


def test_account_of_staff_cannot_be_deleted(client):
    for factory in (StaffFactory, AdministratorFactory):
        assert get_refusal(delete(client, issue_token(factory()))) == account_erasure.STAFF


def test_what_the_gateway_does_not_delete_is_deleted_later(client, ada, token, caplog):
    card = SavedCardFactory(user=ada)
    end_fault = add_fault(operation="forget", kind=FaultKind.TIMEOUT_BEFORE)
    assert delete(client, token).status_code == 200
    assert "is not finished" in caplog.text
    saved = SavedCard.objects.get()
    assert (saved.reference, saved.last_name, saved.street1) == (card.reference, "", "")
    assert AccountErasure.objects.get().finished_at is None

    assert erasure.finish_erasures(now=NOW + HOUR) == []
    assert erasure.finish_erasures(now=NOW + timedelta(days=1)) != []
    end_fault()
    assert erasure.finish_erasures(now=NOW + timedelta(days=1)) == []

    assert not SavedCard.objects.exists()
    assert not SandboxCard.objects.exists()
    assert AccountErasure.objects.get().finished_at == NOW + timedelta(days=1)
    assert erasure.finish_erasures(now=NOW + timedelta(days=2)) == []


def test_erasure_that_the_database_refuses_does_not_stop_the_others(ada, monkeypatch, caplog):
    bob = UserFactory()
    for user in (ada, bob):
        account_erasure.erase_account(user.pk, by=None, now=NOW)
        user.save(update_fields=["first_name"])
    erase = erasure.erase

    def refuse(user, **kwargs):
        if user.pk == ada.pk:
            raise OperationalError("deadlock detected")
        return erase(user, **kwargs)

    monkeypatch.setattr(erasure, "erase", refuse)

    overdue = erasure.finish_erasures(now=NOW + timedelta(days=1))

    assert [each.pk for each in overdue] == [ada.pk]
    assert User.objects.get(pk=bob.pk).first_name == "Erased"
    assert AccountErasure.objects.get(finished_at=None).pk == ada.pk
    assert "is not finished" in caplog.text


class Killed(BaseException):
    """The process dies."""


def test_process_that_dies_leaves_nothing_or_all_to_finish(client, ada, token, monkeypatch):
    SavedCardFactory(user=ada)

    def die(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(erasure.audit_log, "record_change", die)
        with pytest.raises(Killed):
            account_erasure.erase_account(ada.pk, by=ada, now=NOW)
    assert User.objects.get(pk=ada.pk).email == ada.email
    assert not AccountErasure.objects.exists()
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "external_deletions", [die])
        with pytest.raises(Killed):
            account_erasure.erase_account(ada.pk, by=ada, now=NOW)
    assert not User.objects.get(pk=ada.pk).is_active
    assert SavedCard.objects.exists()

    erasure.finish_erasures(now=NOW)

    assert not SavedCard.objects.exists()


def test_what_an_earlier_request_writes_is_erased_an_hour_later(client, ada, token):
    assert delete(client, token).status_code == 200
    # An update of the profile that read the account before.
    ada.save(update_fields=["first_name", "email"])
    SavedCardFactory(user=ada)

    erasure.finish_erasures(now=NOW + HOUR)

    erased = User.objects.get(pk=ada.pk)
    assert (erased.first_name, erased.email) == ("Erased", f"{ada.pk}@erased.invalid")
    assert not SavedCard.objects.exists()
    assert AccountErasure.objects.get().finished_at == NOW + HOUR


def test_account_in_use_again_is_erased_again_with_its_picture_and_card(ada):
    """As after a restore of the database, or a command of the operator."""
    account_erasure.erase_account(ada.pk, by=None, now=NOW)
    erasure.finish_erasures(now=NOW + HOUR)
    # Another machine, which has listed it before, leaves it finished.
    assert erasure._erase_again(ada.pk, now=NOW + HOUR) is None
    assert AccountErasure.objects.get().finished_at == NOW + HOUR
    ada.thumbnail.save("portrait.png", ContentFile(b"1"))
    card = SavedCardFactory(user=ada)
    end_fault = add_fault(operation="forget", kind=FaultKind.TIMEOUT_BEFORE)
    later = NOW + timedelta(days=1)

    account_erasure.erase_account(ada.pk, by=None, now=later)

    row = AccountErasure.objects.get()
    assert (row.begun_at, row.finished_at, row.picture) == (later, None, "")
    assert not ada.thumbnail.storage.exists(ada.thumbnail.name)
    end_fault()
    erasure.finish_erasures(now=later + HOUR)
    assert not SandboxCard.objects.filter(reference=card.reference).exists()
    assert AuditEntry.objects.filter(note="The account was erased.").count() == 2


def test_rows_of_a_former_owner_of_the_address_stay(client, ada, token):
    former = UserFactory()
    revocation = make_email_code(CodePurpose.REVOCATION, ada.email, former)
    fields = {"to": ada.email, "kind": "e-mail change", "created_at": NOW, "next_attempt_at": NOW}
    message = OutboxMessage.objects.create(user=former, **fields)

    assert delete(client, token).status_code == 200

    assert (EmailCode.objects.get(), OutboxMessage.objects.get()) == (revocation, message)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_draft_is_not_created_for_an_account_erased_meanwhile(
    client, ada, token, room, monkeypatch, is_guarded
):
    """Without the guard there would be one: the negative control."""
    lock_drafts = drafts.lock_drafts

    def erase_first(user_id, **kwargs):
        account_erasure.erase_account(user_id, by=ada, now=NOW)
        lock_drafts(user_id, **kwargs)

    monkeypatch.setattr(drafts, "lock_drafts", erase_first)
    if not is_guarded:
        monkeypatch.setattr(UserManager, "lock_active", lambda self, pk: None)
    end = START + 2 * HOUR
    body = {"MeetingRoomId": room.pk, "StartDate": START.isoformat(), "EndDate": end.isoformat()}

    response = post(client, "/api/reservations/create", {"Token": token, **body})

    assert response.status_code == (401 if is_guarded else 200)
    assert Reservation.objects.exists() is not is_guarded


@pytest.mark.django_db(transaction=True)
def test_concurrent_creates_checkouts_and_deletes_leave_no_booking_of_an_erased_account():
    outcomes = set()
    for _ in range(4):
        user, room = UserFactory(), make_room()
        token, draft = issue_token(user), make_draft(user, room)
        later = START + 24 * HOUR
        requests = [
            (PATH, {"Password": PASSWORD}),
            (PATH, {"Password": PASSWORD}),
            ("/api/reservations/checkout", {"ReservationId": draft.pk, "PaymentInfo": CARD}),
            (
                "/api/reservations/create",
                {
                    "MeetingRoomId": room.pk,
                    "StartDate": later.isoformat(),
                    "EndDate": (later + HOUR).isoformat(),
                },
            ),
        ]

        def send(path, body, token=token):
            return post(Client(), path, {"Token": token, **body}).status_code

        statuses = run_concurrently(
            [lambda path=path, body=body: send(path, body) for path, body in requests]
        )

        assert set(statuses) <= {200, 400, 401, 402, 404, 409, 503}
        is_erased = not User.objects.get(pk=user.pk).is_active
        held = Reservation.objects.filter(user=user).exclude(status=Status.CANCELLED)
        assert not (is_erased and held.exists())
        assert is_erased == (200 in statuses[:2])
        outcomes.add(is_erased)
    assert outcomes


SPAN = {"StartDate": START.isoformat(), "EndDate": (START + HOUR).isoformat()}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("reservations/checkout", {"PaymentInfo": CARD}),
        ("reservations/checkout", {"TestMode": True, "UseSavedPaymentInfo": True}),
        ("reservations/create", SPAN),
        ("reservations/update-allowances", {"AllowanceIds": [7]}),
        ("reservation/update-promo-code", {"PromoCode": "TEN"}),
        ("reservations/change", {"ExpectedTotal": 5}),
        ("account/change-email", {"NewEmailAddress": "b@example.com", "Password": PASSWORD}),
        ("account/delete", {"Password": PASSWORD}),
        ("account/complete-payment-setup", {"PaymentSetupId": "x"}),
        ("account/create-payment-setup", {}),
        ("account/update-payment-info", {"PaymentInfo": CARD}),
        ("account/update-info", {"NewFirstName": "Grace"}),
        ("account/update-favorite", {"IsFavorite": True}),
        ("account/calendar", {}),
    ],
)
def test_request_whose_account_is_erased_after_its_token_is_read_is_not_signed_in(
    client, monkeypatch, path, fields
):
    user = SavedCardFactory().user
    draft = make_draft(user)
    for kind in (Operation, TwoStepOperation):

        def erase_and_respond(*args, real=kind.respond):
            account_erasure.erase_account(user.pk, by=None, now=NOW)
            return real(*args)

        monkeypatch.setattr(kind, "respond", erase_and_respond)
    ids = {"ReservationId": draft.pk, "MeetingRoomId": draft.room_id}
    ids["CenterId"] = draft.room.center_id

    response = post(client, f"/api/{path}", {"Token": issue_token(user), **ids, **fields})

    assert (response.status_code, response.json()["Error"]["Summary"]) == (401, "NotSignedIn")
