"""Accounts in the back office."""

import io

import pytest
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from PIL import Image

from accounts.models import CalendarAddress, User
from reservations.booking import account_erasure
from roombook.backoffice.models import AuditEntry
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    StaffFactory,
    UserFactory,
    issue_token,
)
from tests.http import post
from tests.world import NOW

pytestmark = pytest.mark.django_db

LIST = reverse("admin:accounts_user_changelist")


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


@pytest.fixture
def root(client):
    user = AdministratorFactory(email="root@example.com")
    client.force_login(user)
    return user


@pytest.fixture
def staff(client):
    """May change accounts, and is no administrator."""
    user = StaffFactory(email="staff@example.com")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="accounts"))
    client.force_login(user)
    return user


def page_of(user):
    return reverse("admin:accounts_user_change", args=[user.pk])


def filled(user, **fields):
    return {
        "email": user.email,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "company_name": "",
        "phone_number": "",
        "is_active": "on",
        "credit_limit": "0",
        **fields,
    }


def choose(password=PASSWORD):
    """The fields of a form that sets a password."""
    return {"usable_password": "true", "password1": password, "password2": password}


def test_add_account_with_password_creates_account(client, root):
    response = client.post(
        reverse("admin:accounts_user_add"),
        {
            "email": "Grace@Example.com",
            "first_name": "Grace",
            "last_name": "Hopper",
            **choose(),
        },
    )

    assert response.status_code == 302
    grace = User.objects.get(email="grace@example.com")
    assert grace.check_password(PASSWORD)
    assert grace.type == "Account"


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "4242424242424242@example.com"},
        {"phone_number": "+378282246310005"},
        {"company_name": "4242 4242 4242 4242"},
    ],
)
def test_card_number_in_account_form_is_refused(client, root, ada, fields):
    response = client.post(page_of(ada), filled(ada, **fields))

    assert response.status_code == 200
    assert b"This looks like a card number" in response.content
    ada.refresh_from_db()
    assert ada.email == "ada@example.com"


def test_sign_out_action_signs_out_only_the_selected_account(client, root, ada):
    issue_token(ada)
    other = issue_token(UserFactory())

    client.post(LIST, {"action": "sign_out_all_devices", "_selected_action": [ada.pk]})

    assert not ada.tokens.exists()
    assert post(client, "/api/sign-out", {"Token": other}).status_code == 200


def test_clear_failed_sign_ins_action_lets_account_sign_in(client, root, ada):
    wrong = {"EmailAddress": "ada@example.com", "Password": "wrong"}
    for _ in range(5):
        post(client, "/api/sign-in", wrong)

    client.post(LIST, {"action": "clear_failed_sign_ins", "_selected_action": [ada.pk]})

    right = {"EmailAddress": "ada@example.com", "Password": PASSWORD}
    assert post(client, "/api/sign-in", right).status_code == 200


def test_revoke_calendar_address_action_revokes_only_that_of_the_selected_account(
    client, root, ada
):
    grace = UserFactory()
    adas, graces = (reverse("calendar", args=[CalendarAddress.get_secret(u)]) for u in (ada, grace))

    client.post(LIST, {"action": "revoke_calendar_address", "_selected_action": [ada.pk]})

    assert client.get(adas).status_code == 404
    assert client.get(graces).status_code == 200
    assert reverse("calendar", args=[CalendarAddress.get_secret(ada)]) != adas
    assert AuditEntry.objects.filter(object_id=ada.pk, note__icontains="calendar").exists()
    assert not AuditEntry.objects.filter(object_id=grace.pk, note__icontains="calendar").exists()


@pytest.mark.parametrize("page", ["change", "password"])
def test_page_opened_before_an_erasure_does_not_bring_the_data_back(
    client, root, ada, page, monkeypatch
):
    pages = {
        "change": (page_of(ada), filled(ada, first_name="Augusta")),
        "password": (
            reverse("admin:auth_user_password_change", args=[ada.pk]),
            choose("chosen-by-staff-9"),
        ),
    }
    url, fields = pages[page]
    assert client.get(url).status_code == 200
    # Another request reads the account before it is erased, and has it after.
    get_object = DjangoUserAdmin.get_object

    def erase_after_reading(*args):
        user = get_object(*args)
        account_erasure.erase_account(ada.pk, by=ada, now=NOW)
        return user

    with monkeypatch.context() as patch:
        patch.setattr(DjangoUserAdmin, "get_object", erase_after_reading)
        assert client.post(url, fields).status_code == 403
    # The refusal has rolled it back.
    account_erasure.erase_account(ada.pk, by=ada, now=NOW)
    assert client.post(url, fields).status_code == 403
    erased = User.objects.get(pk=ada.pk)
    assert (erased.email, erased.first_name) == (f"{ada.pk}@erased.invalid", "Erased")
    assert not erased.is_active
    assert not erased.has_usable_password()


def test_deleting_an_account_is_forbidden(client, root, ada):
    response = client.post(reverse("admin:accounts_user_delete", args=[ada.pk]), {"post": "yes"})

    assert response.status_code == 403


def test_uploaded_thumbnail_is_reencoded_and_old_file_deleted(
    client, root, ada, django_capture_on_commit_callbacks
):
    ada.thumbnail.save("old.jpg", ContentFile(b"old"))
    old = ada.thumbnail.name
    upload = io.BytesIO()
    Image.new("RGB", (40, 30)).save(upload, "PNG")

    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(
            page_of(ada),
            filled(
                ada,
                thumbnail=SimpleUploadedFile("me.png", upload.getvalue(), content_type="image/png"),
            ),
        )

    assert response.status_code == 302
    ada.refresh_from_db()
    assert "me" not in ada.thumbnail.name
    assert default_storage.exists(ada.thumbnail.name)
    assert not default_storage.exists(old)
