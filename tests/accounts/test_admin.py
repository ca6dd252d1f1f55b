"""Accounts in the back office."""

import io

import pytest
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
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


def test_card_number_in_account_form_is_refused(office, ada):
    for fields in (
        {"email": "4242424242424242@example.com"},
        {"phone_number": "+378282246310005"},
        {"company_name": "4242 4242 4242 4242"},
    ):
        response = office.post(page_of(ada), filled(ada, **fields))
        assert response.status_code == 200
        assert "This looks like a card number" in response.text, fields
    ada.refresh_from_db()
    assert ada.email == "ada@example.com"


def test_actions_of_the_list_affect_only_the_selected_account(office, ada):
    issue_token(ada)
    grace = UserFactory()
    token = issue_token(grace)
    adas, graces = (reverse("calendar", args=[CalendarAddress.get_secret(u)]) for u in (ada, grace))
    for _ in range(5):
        post(office, "/api/sign-in", {"EmailAddress": ada.email, "Password": "wrong"})

    for action in ("sign_out_all_devices", "revoke_calendar_address", "clear_failed_sign_ins"):
        office.post(LIST, {"action": action, "_selected_action": [ada.pk]})

    assert not ada.tokens.exists()
    assert post(office, "/api/sign-out", {"Token": token}).status_code == 200
    right = {"EmailAddress": ada.email, "Password": PASSWORD}
    assert post(office, "/api/sign-in", right).status_code == 200
    assert office.get(adas).status_code == 404
    assert office.get(graces).status_code == 200
    assert reverse("calendar", args=[CalendarAddress.get_secret(ada)]) != adas
    notes = AuditEntry.objects.filter(note__icontains="calendar")
    assert [each.object_id for each in notes] == [ada.pk]
    # Accounts are erased, never deleted.
    delete = reverse("admin:accounts_user_delete", args=[ada.pk])
    assert office.post(delete, {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("page", ["change", "password"])
def test_page_opened_before_an_erasure_does_not_bring_the_data_back(office, ada, page, monkeypatch):
    pages = {
        "change": (page_of(ada), filled(ada, first_name="Augusta")),
        "password": (
            reverse("admin:auth_user_password_change", args=[ada.pk]),
            choose("chosen-by-staff-9"),
        ),
    }
    url, fields = pages[page]
    assert office.get(url).status_code == 200
    # Another request reads the account before it is erased, and has it after.
    get_object = DjangoUserAdmin.get_object

    def erase_after_reading(*args):
        user = get_object(*args)
        account_erasure.erase_account(ada.pk, by=ada, now=NOW)
        return user

    with monkeypatch.context() as patch:
        patch.setattr(DjangoUserAdmin, "get_object", erase_after_reading)
        assert office.post(url, fields).status_code == 403
    # The refusal has rolled it back.
    account_erasure.erase_account(ada.pk, by=ada, now=NOW)
    assert office.post(url, fields).status_code == 403
    erased = User.objects.get(pk=ada.pk)
    assert (erased.email, erased.first_name) == (f"{ada.pk}@erased.invalid", "Erased")
    assert not erased.is_active
    assert not erased.has_usable_password()


def test_uploaded_thumbnail_is_reencoded_and_old_file_deleted(
    office, ada, django_capture_on_commit_callbacks
):
    ada.thumbnail.save("old.jpg", ContentFile(b"old"))
    old = ada.thumbnail.name
    upload = io.BytesIO()
    Image.new("RGB", (40, 30)).save(upload, "PNG")
    file = SimpleUploadedFile("me.png", upload.getvalue(), content_type="image/png")

    with django_capture_on_commit_callbacks(execute=True):
        response = office.post(page_of(ada), filled(ada, thumbnail=file))

    assert response.status_code == 302
    ada.refresh_from_db()
    assert "me" not in ada.thumbnail.name
    assert default_storage.exists(ada.thumbnail.name)
    assert not default_storage.exists(old)
