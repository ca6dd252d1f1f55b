"""POST /api/account/change-email, and its confirmation and revocation (B22.3, B22.5)"""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts import email_codes
from accounts import sign_in as sign_in_module
from accounts.limits import CODE_BY_ACCOUNT, SIGN_IN_BY_ACCOUNT, hash_email
from accounts.models import EmailCode, OutboxMessage
from tests.concurrency import run_concurrently
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    StaffFactory,
    UserFactory,
    issue_token,
)
from tests.http import post
from tests.operations.account_codes import (
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

OLD, NEW = "ada@example.com", "augusta@example.com"


def change(client, token, email=NEW, password=PASSWORD, **fields):
    return call(
        client, "change-email", Token=token, NewEmailAddress=email, Password=password, **fields
    )


def confirm(client, code, email=NEW):
    return call(client, "confirm-email", EmailAddress=email, Code=code)


def test_address_changes_when_the_new_one_is_confirmed(client, ada, token):
    response = change(client, token, " Augusta@Example.com")

    assert (response.status_code, response.json()) == (200, {"Success": True})
    assert sign_in(client, OLD, PASSWORD).status_code == 200
    assert get_kinds(NEW) == get_kinds(OLD) == ["e-mail change"]
    notice = OutboxMessage.objects.get(to=OLD).text
    assert NEW in notice
    assert read_code(NEW) not in notice

    body = confirm(client, read_code(NEW)).json()

    assert body["UserInfo"]["Id"] == ada.pk
    assert body["UserInfo"]["EmailAddress"] == NEW
    for valid in (token, body["Token"]):
        assert post(client, "/api/account/update-info", {"Token": valid}).status_code == 200
    assert sign_in(client, OLD, PASSWORD).status_code == 401
    assert sign_in(client, NEW, PASSWORD).status_code == 200
    ada.refresh_from_db()
    assert "augusta" in ada.search_text


def test_address_of_another_account_is_not_revealed_and_not_taken(client, token):
    staff = "NewEmailAddress: Ask an administrator to change the address of staff."
    assert get_details(change(client, issue_token(StaffFactory()))) == staff
    bob = UserFactory(email=NEW)

    response = change(client, token)

    assert (response.status_code, response.json()) == (200, {"Success": True})
    assert get_kinds(NEW) == ["e-mail change"]
    message = OutboxMessage.objects.get(to=NEW)
    assert "it has an account of its own" in message.text
    assert message.user is None
    assert not EmailCode.objects.filter(email=NEW).exclude(digest="").exists()
    bob.refresh_from_db()
    assert bob.email == NEW


def test_code_of_the_notice_takes_the_account_back(client, ada, token):
    """A thief knows the password, and even changes the address and the password again."""
    change(client, token)
    revocation = read_code(OLD)
    confirm(client, read_code(NEW))
    change(client, token, "third@example.com")
    thief = confirm(client, read_code("third@example.com"), "third@example.com").json()["Token"]
    call(client, "request-password-reset", EmailAddress="third@example.com")
    reset(client, "third@example.com", read_code("third@example.com"), "password-of-a-thief")
    thiefs_revocation = read_code(NEW)

    # Wrong codes do not use it up, and it is valid for days.
    for number in range(6):
        assert get_details(reset(client, OLD, "1", address=f"198.51.100.{number}")) == WRONG_CODE
    assert reset(client, OLD, revocation).status_code == 200

    assert sign_in(client, OLD, NEW_PASSWORD).json()["UserInfo"]["Id"] == ada.pk
    assert sign_in(client, "third@example.com", "password-of-a-thief").status_code == 401
    assert post(client, "/api/account/update-info", {"Token": thief}).status_code == 401
    assert get_details(reset(client, NEW, thiefs_revocation)) == WRONG_CODE
    assert get_details(reset(client, OLD, revocation)) == WRONG_CODE


def test_strangers_keep_the_owner_neither_from_changing_nor_from_revoking(client, token):
    for _ in range(CODE_BY_ACCOUNT.maximum):
        CODE_BY_ACCOUNT.attempt(hash_email(OLD), now=NOW)
    assert change(client, token).status_code == 200
    code = read_code(OLD)
    for _ in range(SIGN_IN_BY_ACCOUNT.maximum):
        SIGN_IN_BY_ACCOUNT.attempt(hash_email(OLD), now=NOW)
    assert reset(client, OLD, "0" * 32, address="198.51.100.1").status_code == 429

    assert reset(client, OLD, f"{code[:16].upper()}-{code[16:]} ").status_code == 200


@pytest.mark.parametrize("operation", ["change-email", "delete"])
def test_old_password_is_of_no_use_once_the_owner_has_reset_it(
    client, ada, token, operation, monkeypatch
):
    call(client, "request-password-reset", EmailAddress=OLD)
    code = read_code(OLD)
    require_password = sign_in_module.require_password

    def reset_after_verifying(*args, **kwargs):
        require_password(*args, **kwargs)
        assert reset(client, OLD, code).status_code == 200

    for module in (sign_in_module, email_codes):
        monkeypatch.setattr(module, "require_password", reset_after_verifying)
    fields = {"Token": token, "NewEmailAddress": NEW, "Password": PASSWORD}
    changed_meanwhile = "Password: The password was changed elsewhere meanwhile."
    assert get_details(call(client, operation, **fields)) == changed_meanwhile
    assert sign_in(client, OLD, NEW_PASSWORD).status_code == 200
    assert not EmailCode.objects.exists()


def change_password(client, token):
    fields = {"NewPassword": NEW_PASSWORD, "ConfirmNewPassword": NEW_PASSWORD}
    body = {"Token": token, "CurrentPassword": PASSWORD, **fields}
    return post(client, "/api/change-password", body)


@pytest.mark.parametrize(
    "cancel", [change_password, lambda client, token: reset(client, OLD, read_code(OLD))]
)
def test_new_password_or_a_revocation_cancels_a_pending_change(client, token, cancel):
    change(client, token)
    assert cancel(client, token).status_code == 200

    assert get_details(confirm(client, read_code(NEW))) == WRONG_CODE


def test_revocation_ends_after_a_week(client, token, time_machine):
    change(client, token)
    time_machine.move_to(NOW + timedelta(days=6))
    call_command("erase_expired")
    assert EmailCode.objects.exists()
    time_machine.move_to(NOW + timedelta(days=7))

    assert get_details(reset(client, OLD, read_code(OLD))) == WRONG_CODE


def test_revocation_of_an_address_that_is_taken_meanwhile_is_refused(client, ada, token):
    change(client, token)
    code = read_code(OLD)
    confirm(client, read_code(NEW))
    UserFactory(email=OLD)

    taken = "EmailAddress: An account with this e-mail address already exists."
    assert get_details(reset(client, OLD, code)) == taken
    ada.refresh_from_db()
    assert ada.email == NEW
    assert ada.check_password(PASSWORD)


def test_address_that_staff_set_cannot_be_revoked(client, ada, token):
    change(client, token)
    code = read_code(OLD)
    confirm(client, read_code(NEW))
    staff = Client()
    staff.force_login(AdministratorFactory())
    page = reverse("admin:accounts_user_change", args=[ada.pk])
    form = staff.get(page).context["adminform"].form
    fields = {name: value for name, value in form.initial.items() if value is not None}
    del fields["password"], fields["thumbnail"]
    assert staff.post(page, {**fields, "email": "real@example.com"}).status_code == 302

    assert get_details(reset(client, OLD, code)) == WRONG_CODE


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_accounts_that_change_to_the_same_address_at_once_one_gets_it(client):
    users = UserFactory.create_batch(4)
    codes = []
    for user in users:
        assert change(client, issue_token(user)).status_code == 200
        codes.append(read_code(NEW))

    statuses = run_concurrently(
        lambda code=code: confirm(Client(), code).status_code for code in codes
    )

    assert sorted(statuses) == [200, 400, 400, 400]
    for user in users:
        user.refresh_from_db()
    assert [user.email == NEW for user in users] == [status == 200 for status in statuses]


def test_three_codes_to_change_the_address_are_open_and_every_one_takes_it_back(client):
    """One account: whichever addresses it wants. Other accounts may want to have the same one."""
    ada, grace = UserFactory(), UserFactory()
    revocations = []
    assert change(client, issue_token(grace)).status_code == 200
    for new in (NEW, "a@example.com", "b@example.com", "c@example.com"):
        assert change(client, issue_token(ada), new).status_code == 200
        revocations.append(read_code(ada.email))

    open_codes = EmailCode.objects.open(NOW).filter(purpose="email-change")
    assert [(each.user, each.email) for each in open_codes.order_by("pk")] == [
        *((grace, NEW), (ada, "a@example.com"), (ada, "b@example.com"), (ada, "c@example.com"))
    ]
    assert reset(client, ada.email, revocations[0]).status_code == 200
