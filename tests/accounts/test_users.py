"""Accounts and the passwords that they sign in with."""

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction

from accounts.models import OutboxMessage, User
from accounts.passwords import MaximumLengthValidator
from tests.accounts.outbox_helpers import roll_back_after
from tests.factories_people import PASSWORD, StaffFactory, UserFactory, issue_token

pytestmark = pytest.mark.django_db

NEW_PASSWORD = "stormy-lighthouse-7"


def test_email_is_required_and_unique_in_any_case():
    user = User.objects.create_user(" Ada@Example.COM ", PASSWORD, first_name="Ada")
    assert user.email == "ada@example.com"
    assert User.objects.get_by_natural_key("ADA@example.com") == user

    with pytest.raises(IntegrityError), transaction.atomic():
        UserFactory(email="ADA@EXAMPLE.com")
    # Not even past the model.
    other = UserFactory()
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.filter(pk=other.pk).update(email="Ada@example.com")
    with pytest.raises(ValueError):
        User.objects.create_user(" ", PASSWORD)
    root = User.objects.create_superuser("root@example.com", PASSWORD)
    types = [each.type for each in (user, StaffFactory(), root)]
    assert types == ["Account", "Staff", "Administrator"]


# --- A new password ------------------------------------------------------------------------------


def change_by_command(user, monkeypatch):
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW_PASSWORD)
    call_command("changepassword", user.email, verbosity=0)


def set_password(user, monkeypatch):
    user.set_password(NEW_PASSWORD)
    assert user.tokens.count() == 2, "not before it is saved"
    user.save()


def remove_password(user, monkeypatch):
    user.set_unusable_password()
    user.save()


@pytest.mark.parametrize("change", [change_by_command, set_password, remove_password])
def test_new_or_removed_password_signs_out_all_devices_and_is_told_by_email(
    monkeypatch, settings, change
):
    settings.SUPPORT_EMAIL = "help@example.com"
    user, other = UserFactory(email="ada@example.com"), UserFactory()
    for each in (user, user, other):
        issue_token(each)

    change(user, monkeypatch)

    user.refresh_from_db()
    is_removed = change is remove_password
    assert user.check_password(NEW_PASSWORD) is not is_removed
    assert not user.tokens.exists()
    assert other.tokens.count() == 1
    message = OutboxMessage.objects.get()
    assert message.kind == "password changed"
    assert (message.user, message.to) == (user, user.email)
    assert message.subject == f"Your password was {'removed' if is_removed else 'changed'}"
    for body in (message.text, message.html):
        assert "help@example.com" in body
        assert NEW_PASSWORD not in body


def test_new_account_other_fields_and_failed_changes_sign_out_nobody_and_send_nothing():
    user = UserFactory()
    issue_token(user)

    user.first_name = "Augusta"
    user.save()
    # A mere upgrade of the hash, as Django does it.
    user.set_password(PASSWORD)
    user._password = None
    user.save(update_fields=["password"])
    user.set_password(NEW_PASSWORD)
    roll_back_after(user.save)

    assert user.tokens.count() == 1
    assert not OutboxMessage.objects.exists()


def test_passwords_are_of_limited_length_and_hashed_by_argon2_with_owasp_parameters(settings):
    MaximumLengthValidator().validate("x" * 128)
    with pytest.raises(ValidationError):
        MaximumLengthValidator().validate("x" * 129)
    settings.PASSWORD_HASHERS = ["accounts.passwords.Argon2Hasher"]
    user = UserFactory()

    assert user.password.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
    assert user.check_password(PASSWORD)
    assert not user.check_password("wrong")
