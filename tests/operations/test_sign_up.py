"""POST /api/account/create and /api/account/confirm-email (B22.1, B22.3)"""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.limits import clear_failed_sign_ins
from accounts.models import CodePurpose, EmailCode, OutboxMessage, User
from accounts.models.tokens import MAX_TRIES, MAX_TRIES_ELSEWHERE
from accounts.profile import create_customer
from roombook.backoffice.models import AuditAction, AuditEntry
from tests.concurrency import run_concurrently
from tests.factories_people import UserFactory, make_email_code
from tests.http import post
from tests.operations.account_codes import (
    GRACE,
    NEW_PASSWORD,
    WRONG_CODE,
    call,
    get_details,
    get_kinds,
    read_code,
    reset,
    sign_in,
)
from tests.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

EMAIL = GRACE["EmailAddress"]


@pytest.fixture(autouse=True)
def _open_sign_up(settings):
    settings.SIGN_UP = "open"


def sign_up(client, **fields):
    return call(client, "create", **{**GRACE, **fields})


def confirm(client, code, email=EMAIL, **fields):
    return call(client, "confirm-email", EmailAddress=email, Code=code, **fields)


def test_sign_up_creates_account_only_after_the_code_is_confirmed(client):
    response = sign_up(client, EmailAddress=" Grace@Example.COM ")

    assert (response.status_code, response.json()) == (200, {"Success": True})
    assert not User.objects.exists()
    assert sign_in(client, EMAIL, NEW_PASSWORD).status_code == 401
    message = OutboxMessage.objects.get()
    assert (message.to, message.user_id, message.is_secret) == (EMAIL, None, True)
    code = read_code(EMAIL)
    stored = str(EmailCode.objects.values().get())
    assert code.replace(" ", "") not in stored
    assert NEW_PASSWORD not in stored

    confirmed = confirm(client, code, "GRACE@example.com")

    user = User.objects.get()
    message.refresh_from_db()
    assert message.user == user
    shown = {"Id": user.pk, "EmailAddress": EMAIL, "FirstName": "Grace", "CompanyName": "Navy"}
    assert confirmed.json()["UserInfo"].items() >= shown.items()
    token = confirmed.json()["Token"]
    assert post(client, "/api/account/update-info", {"Token": token}).status_code == 200
    assert sign_in(client, EMAIL, NEW_PASSWORD).status_code == 200
    assert AuditEntry.objects.filter(actor=user, action=AuditAction.CREATE).exists()
    # The code works once, and is then of no use for anything else.
    assert get_details(confirm(client, code)) == WRONG_CODE
    assert get_details(reset(client, EMAIL, code)) == WRONG_CODE


def test_sign_up_is_not_found_while_it_is_closed(client, settings):
    settings.SIGN_UP = "closed"

    response = sign_up(client)

    assert (response.status_code, response.json()["Error"]["Summary"]) == (404, "NotFound")
    assert not OutboxMessage.objects.exists()


def test_sign_up_with_known_address_mails_its_owner_instead(client):
    ada = UserFactory(email="ada@example.com")

    response = sign_up(client, EmailAddress="ADA@example.com")

    assert (response.status_code, response.json()) == (200, {"Success": True})
    message = OutboxMessage.objects.get()
    assert (message.to, message.user) == (ada.email, ada)
    assert message.subject == "You already have an account at roombook"
    code = read_code(ada.email)
    assert get_details(confirm(client, code, ada.email)) == WRONG_CODE
    ada.refresh_from_db()
    assert not ada.check_password(NEW_PASSWORD)
    assert reset(client, ada.email, code, "quiet-lighthouse-8").status_code == 200


def test_email_of_sign_up_contains_nothing_that_its_sender_chose(client):
    """Otherwise anybody could send advertisements to strangers."""
    names = ("FirstName", "LastName", "CompanyName", "PhoneNumber")
    sign_up(client, **dict.fromkeys(names, "Buy\r\nBcc: x https://evil.example"))

    message = OutboxMessage.objects.get()
    assert message.subject == "Confirm your e-mail address for roombook"
    assert "Bcc" not in message.as_email.message().as_string()
    assert "evil" not in message.text + message.html


def test_code_ends_after_wrong_ones_and_after_half_an_hour(client, time_machine):
    sign_up(client)
    code = read_code(EMAIL)
    for _ in range(MAX_TRIES):
        assert get_details(confirm(client, "0000 0000")) == WRONG_CODE
    assert get_details(confirm(client, code, address="192.0.2.9")) == WRONG_CODE

    # Strangers do not end it as soon.
    sign_up(client)
    code = read_code(EMAIL)
    for number in range(MAX_TRIES_ELSEWHERE):
        assert EmailCode.objects.open(NOW).exists()
        confirm(client, "0000 0000", address=f"198.51.100.{number}")
    assert get_details(confirm(client, code, address="192.0.2.9")) == WRONG_CODE

    sign_up(client)
    code = read_code(EMAIL)
    time_machine.move_to(NOW + timedelta(minutes=30))
    assert get_details(confirm(client, code, address="192.0.2.9")) == WRONG_CODE
    assert not User.objects.exists()

    call_command("erase_expired")
    assert not EmailCode.objects.exists()


def test_wrong_codes_count_as_failed_sign_ins(client):
    for number in range(5):
        confirm(client, "1", f"Somebody@example.com{'' if number else ' '}")

    assert confirm(client, "1", "somebody@example.com").status_code == 429
    assert sign_in(client, "somebody@example.com", "x").status_code == 401  # Another network.
    assert confirm(client, "1", "another@example.com").status_code == 400


def test_requests_for_codes_of_both_kinds_are_limited_together(client):
    def request(number):
        if number % 2:
            return sign_up(client)
        return call(client, "request-password-reset", EmailAddress=EMAIL.upper())

    assert [request(number).status_code for number in range(6)] == [200] * 5 + [429]
    assert OutboxMessage.objects.count() == 5
    clear_failed_sign_ins(EMAIL)
    assert request(0).status_code == 200


def test_second_sign_up_does_not_end_the_first(client):
    """Otherwise a stranger's sign-up would replace the password of the owner's."""
    sign_up(client)
    code = read_code(EMAIL)
    sign_up(client, Password="password-of-a-thief", address="198.51.100.1")
    second = read_code(EMAIL)

    assert confirm(client, code).status_code == 200
    assert get_details(confirm(client, second)) == WRONG_CODE
    assert sign_in(client, EMAIL, NEW_PASSWORD).status_code == 200
    assert sign_in(client, EMAIL, "password-of-a-thief").status_code == 401


def test_password_of_a_stranger_who_waits_for_the_owner_to_confirm_opens_nothing(client):
    sign_up(client, Password="password-of-a-thief", address="198.51.100.1")

    body = confirm(client, read_code(EMAIL)).json()

    assert post(client, "/api/account/update-info", {"Token": body["Token"]}).status_code == 200
    assert sign_in(client, EMAIL, "password-of-a-thief").status_code == 401
    assert not User.objects.get().has_usable_password()
    call(client, "request-password-reset", EmailAddress=EMAIL)
    assert reset(client, EMAIL, read_code(EMAIL)).status_code == 200
    assert sign_in(client, EMAIL, NEW_PASSWORD).status_code == 200


def test_account_that_staff_created_meanwhile_is_not_taken_over_by_a_sign_up(client):
    sign_up(client)
    desk = create_customer(email=EMAIL, first_name="Grace", last_name="Hopper")

    taken = "EmailAddress: An account with this e-mail address already exists."
    assert get_details(confirm(client, read_code(EMAIL))) == taken

    desk.refresh_from_db()
    assert not desk.has_usable_password()
    assert not desk.tokens.exists()


def test_code_of_disabled_account_confirms_nothing(client):
    make_email_code(CodePurpose.EMAIL_CHANGE, EMAIL, UserFactory(is_active=False))

    assert get_details(confirm(client, "0471 1147")) == WRONG_CODE
    assert get_kinds(EMAIL) == []


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
def test_of_sixteen_concurrent_confirmations_one_succeeds(monkeypatch, is_guarded):
    ada = UserFactory()
    make_email_code(CodePurpose.EMAIL_CHANGE, EMAIL, ada)
    if not is_guarded:
        monkeypatch.setattr("accounts.email_codes.use_code", lambda code, now: None)

    def send():
        return confirm(Client(), "04711147").status_code

    statuses = run_concurrently([send] * 16)

    assert (statuses.count(200) == 1) == is_guarded
    assert ada.tokens.count() == statuses.count(200)
