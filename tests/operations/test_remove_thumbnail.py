"""POST /api/account/remove-thumbnail"""

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from tests.factories_people import UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/remove-thumbnail"


@pytest.fixture
def ada():
    user = UserFactory(email="ada@example.com")
    user.thumbnail.save("ada.jpg", ContentFile(b"picture"))
    return user


def test_remove_thumbnail_clears_field_and_deletes_file(
    client, ada, django_capture_on_commit_callbacks
):
    name = ada.thumbnail.name
    assert default_storage.exists(name)

    with django_capture_on_commit_callbacks(execute=True):
        response = post(client, PATH, {"Token": issue_token(ada)})
        assert default_storage.exists(name), "only once the change is certain"

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedUserInfo": {
            "Id": ada.pk,
            "Type": "Account",
            "FirstName": "Ada",
            "LastName": "Lovelace",
            "EmailAddress": "ada@example.com",
        },
    }
    ada.refresh_from_db()
    assert not ada.thumbnail
    assert not default_storage.exists(name)


def test_remove_thumbnail_without_thumbnail_succeeds_as_csv_and_jsonp(client):
    ada = UserFactory(email="ada@example.com")

    rows = table(post_csv(client, PATH + "?format=csv", {"Token": issue_token(ada)}))
    assert rows[1] == ["true", str(ada.pk), "Account", "Ada", "Lovelace", "ada@example.com"]
    wrapped = post(client, PATH + "?callback=go", {"Token": issue_token(ada)})
    assert jsonp(wrapped, "go")["Success"] is True


def test_remove_thumbnail_succeeds_if_file_cannot_be_deleted(
    client, ada, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    def full_disk(name):
        raise OSError("read-only file system")

    monkeypatch.setattr(default_storage._wrapped, "delete", full_disk)

    with django_capture_on_commit_callbacks(execute=True):
        response = post(client, PATH, {"Token": issue_token(ada)})

    assert response.status_code == 200
    assert "could not be deleted" in caplog.text


def test_remove_thumbnail_requires_token(client, ada):
    assert post(client, PATH).status_code == 401
    ada.refresh_from_db()
    assert ada.thumbnail
