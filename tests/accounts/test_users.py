"""Accounts and the passwords that they sign in with."""

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.passwords import MaximumLengthValidator
from roombook.card_numbers import has_digits_of_a_card
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    SavedCardFactory,
    StaffFactory,
    UserFactory,
    issue_token,
)

pytestmark = pytest.mark.django_db


def test_email_is_unique_in_any_case():
    user = User.objects.create_user(" Ada@Example.COM ", PASSWORD, first_name="Ada")
    assert user.email == "ada@example.com"
    assert User.objects.get_by_natural_key("ADA@example.com") == user

    with pytest.raises(IntegrityError), transaction.atomic():
        UserFactory(email="ADA@EXAMPLE.com")
    # Not even past the model.
    other = UserFactory()
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.filter(pk=other.pk).update(email="Ada@example.com")


def test_create_user_without_email_raises():
    with pytest.raises(ValueError):
        User.objects.create_user(" ", PASSWORD)


def test_user_type_follows_staff_and_superuser_flags():
    assert UserFactory().type == "Account"
    assert StaffFactory().type == "Staff"
    assert AdministratorFactory().type == "Administrator"
    assert User.objects.create_superuser("root@example.com", PASSWORD).type == "Administrator"


def test_user_names_and_saved_card():
    user = UserFactory()
    assert (user.get_full_name(), user.get_short_name()) == ("Ada Lovelace", "Ada")
    assert user.saved_payment_info is None
    card = SavedCardFactory(user=UserFactory())
    assert User.objects.get(pk=card.user.pk).saved_payment_info == card


def test_new_password_signs_out_all_devices():
    user, other = UserFactory(), UserFactory()
    issue_token(user)
    issue_token(user)
    issue_token(other)

    user.set_password("stormy-lighthouse-7")
    assert user.tokens.count() == 2, "not before it is saved"
    user.save()

    assert not user.tokens.exists()
    assert other.tokens.count() == 1


def test_password_removal_signs_out_all_devices():
    user = UserFactory()
    issue_token(user)

    user.set_unusable_password()
    user.save()

    assert not user.tokens.exists()


def test_changepassword_command_signs_out_all_devices(monkeypatch):
    user = UserFactory(email="ada@example.com")
    issue_token(user)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "stormy-lighthouse-7")

    call_command("changepassword", "ada@example.com", verbosity=0)

    user.refresh_from_db()
    assert user.check_password("stormy-lighthouse-7")
    assert not user.tokens.exists()


def test_saving_other_fields_signs_out_nobody():
    user = UserFactory()
    issue_token(user)

    user.first_name = "Augusta"
    user.save()
    # A mere upgrade of the hash, as Django does it.
    user.set_password(PASSWORD)
    user._password = None
    user.save(update_fields=["password"])

    assert user.tokens.count() == 1


def test_password_longer_than_the_api_accepts_is_refused():
    MaximumLengthValidator().validate("x" * 128)
    with pytest.raises(ValidationError):
        MaximumLengthValidator().validate("x" * 129)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("4242424242424242", True),
        ("4242 4242 4242 4242", True),
        ("Ada 4242-4242-4242-4242 Lovelace", True),
        ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", True),
        ("Ada Lovelace", False),
        ("Suite 1200, Building 45, Unit 678", False),
        ("", False),
    ],
)
def test_contains_card_number_counts_digits_of_any_script(text, holds):
    assert has_digits_of_a_card(text) is holds


def test_passwords_are_hashed_by_argon2_with_owasp_parameters(settings):
    settings.PASSWORD_HASHERS = ["accounts.passwords.Argon2Hasher"]
    user = UserFactory()

    assert user.password.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
    assert user.check_password(PASSWORD)
    assert not user.check_password("wrong")
