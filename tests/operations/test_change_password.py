"""POST /api/change-password"""

import pytest

from accounts.models import ApiToken
from accounts.models.api_token import hash_token_secret
from tests.factories_people import PASSWORD, UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/change-password"
NEW = "stormy-lighthouse-7"


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


@pytest.fixture
def change(client, token):
    def call(**fields):
        body = {"CurrentPassword": PASSWORD, "NewPassword": NEW, "ConfirmNewPassword": NEW}
        return post(client, PATH, {"Token": token, **body, **fields})

    return call


def test_change_password_sets_new_password(client, change, ada):
    response = change()

    assert response.status_code == 200
    assert response.json() == {"Success": True}
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    answer = post(client, "/api/sign-in", {"EmailAddress": ada.email, "Password": NEW})
    assert answer.status_code == 200


def test_change_password_accepts_and_answers_csv(client, token):
    row = {
        "Token": token,
        "CurrentPassword": PASSWORD,
        "NewPassword": NEW,
        "ConfirmNewPassword": NEW,
    }
    assert table(post_csv(client, PATH + ".csv", row)) == [["Success"], ["true"]]


def test_change_password_answers_jsonp(client, token):
    row = {
        "Token": token,
        "CurrentPassword": PASSWORD,
        "NewPassword": NEW,
        "ConfirmNewPassword": NEW,
    }
    assert jsonp(post(client, PATH + "?callback=go", row), "go") == {"Success": True}


def test_change_password_signs_out_other_devices(client, change, ada, token):
    other = issue_token(ada)
    strangers = issue_token(UserFactory())

    change()

    def works(secret):
        return post(client, "/api/account/update-info", {"Token": secret}).status_code == 200

    assert works(token)
    assert not works(other)
    assert works(strangers)


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"CurrentPassword": "wrong"}, "CurrentPassword", "This is not your current password."),
        (
            {"ConfirmNewPassword": NEW + "!"},
            "ConfirmNewPassword",
            "The two new passwords differ.",
        ),
        (
            {"NewPassword": PASSWORD, "ConfirmNewPassword": PASSWORD},
            "NewPassword",
            "The new password must differ from the current one.",
        ),
        (
            {"NewPassword": "1234567", "ConfirmNewPassword": "1234567"},
            "NewPassword",
            "This password is too short. It must contain at least 8 characters."
            " This password is too common. This password is entirely numeric.",
        ),
        (
            {"NewPassword": "Lovelace1", "ConfirmNewPassword": "Lovelace1"},
            "NewPassword",
            "The password is too similar to the last name.",
        ),
        (
            {"NewPassword": "x" * 129, "ConfirmNewPassword": NEW},
            "NewPassword",
            "Must have at most 128 characters.",
        ),
        (
            {"CurrentPassword": "x" * 5000},
            "CurrentPassword",
            "Must have at most 128 characters.",
        ),
        ({"NewPassword": None}, "NewPassword", "Required."),
        ({"ConfirmNewPassword": 1}, "ConfirmNewPassword", "Must be text."),
    ],
)
def test_change_password_failure_names_field_and_changes_nothing(
    change, ada, fields, field, reason
):
    other = issue_token(ada)

    response = change(**fields)

    assert response.status_code == 400
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "InvalidRequest",
            "Message": "The request is not valid.",
            "Details": f"{field}: {reason}",
        },
    }
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)
    assert ApiToken.objects.filter(digest=hash_token_secret(other)).exists()


def test_wrong_current_password_counts_as_failed_sign_in(client, change, ada):
    for _ in range(3):
        assert change(CurrentPassword="wrong").status_code == 400
    for _ in range(2):
        post(client, "/api/sign-in", {"EmailAddress": ada.email, "Password": "wrong"})

    response = change()
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 900
    answer = post(client, "/api/sign-in", {"EmailAddress": ada.email, "Password": PASSWORD})
    assert answer.status_code == 429
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_password_changed_elsewhere_meanwhile_is_not_overwritten(change, ada, monkeypatch):
    from accounts import sign_in

    def changed_meanwhile(password, encoded):
        ada.set_password("an administrator's")
        ada.save()
        return True, False

    monkeypatch.setattr(sign_in, "verify_password", changed_meanwhile)

    assert change().status_code == 400
    ada.refresh_from_db()
    assert ada.check_password("an administrator's")


def test_change_password_requires_token(client, ada):
    assert post(client, PATH, {"CurrentPassword": PASSWORD}).status_code == 401


def test_change_password_sends_email_to_owner(change, ada):
    change(CurrentPassword="wrong")
    change()

    assert list(ada.mails.values_list("kind", "to")) == [("password changed", ada.email)]
