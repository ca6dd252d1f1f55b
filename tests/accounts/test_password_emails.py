"""E-mails about a changed password."""

import pytest

from accounts.models import OutboxMessage, User
from tests.accounts.outbox_helpers import roll_back_after
from tests.factories_people import PASSWORD, UserFactory


@pytest.mark.django_db
def test_new_account_gets_no_password_email():
    User.objects.create_user("ada@example.com", PASSWORD, first_name="Ada", last_name="L")

    assert not OutboxMessage.objects.exists()


@pytest.mark.django_db
def test_password_change_sends_email_to_owner(settings):
    settings.SUPPORT_EMAIL = "help@example.com"
    user = UserFactory()

    user.set_password("noisy-harbour-43")
    user.save()

    message = OutboxMessage.objects.get()
    assert (message.kind, message.about) == ("password changed", f"account {user.pk}")
    assert (message.user, message.to) == (user, user.email)
    assert message.subject == "Your password was changed"
    for body in (message.text, message.html):
        assert user.email in body
        assert "If it was not you" in body
        assert "help@example.com" in body
    assert "noisy-harbour-43" not in message.text + message.html


@pytest.mark.django_db
def test_password_removal_sends_email_to_owner():
    user = UserFactory()

    user.set_unusable_password()
    user.save()

    assert OutboxMessage.objects.get().subject == "Your password was removed"


@pytest.mark.django_db
def test_other_account_changes_send_no_email():
    user = UserFactory()
    user.first_name = "Grace"
    user.save()

    # A better hash of the same password.
    user.set_password(PASSWORD)
    user._password = None
    user.save()

    assert not OutboxMessage.objects.exists()


@pytest.mark.django_db
def test_failed_password_change_sends_no_email():
    user = UserFactory()
    user.set_password("noisy-harbour-43")

    roll_back_after(user.save)

    assert not OutboxMessage.objects.exists()
