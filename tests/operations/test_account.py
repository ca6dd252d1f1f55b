"""What customers change in their account: /api/account/update-info, remove-thumbnail,
update-favorite and calendar, /api/change-password and /api/sign-out
"""

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from accounts import sign_in as sign_in_module
from accounts.models import ApiToken, CalendarAddress
from centers.models import Favorite
from tests.concurrency import run_concurrently
from tests.factories_centers import CenterFactory, FavoriteFactory
from tests.factories_people import PASSWORD, UserFactory, issue_token
from tests.http import post
from tests.operations.account_codes import NEW_PASSWORD, sign_in

pytestmark = pytest.mark.django_db

UPDATE = "/api/account/update-info"
REMOVE_THUMBNAIL = "/api/account/remove-thumbnail"
FAVORITE = "/api/account/update-favorite"
CALENDAR = "/api/account/calendar"
OLD_KEY = "the-former-key-of-this-service-which-was-replaced-by-another-one"


def is_signed_in(client, token):
    return post(client, UPDATE, {"Token": token}).status_code == 200


# --- The profile ----------------------------------------------------------------------------------


def test_sent_fields_are_changed_absent_ones_kept_and_empty_ones_cleared(get, ada):
    fields = {
        "FirstName": "Augusta",
        "LastName": "King",
        "CompanyName": "Analytical",
        "PhoneNumber": "+44 20 7946 0958",
    }
    shown = get(UPDATE, **{f"New{name}": f" {text}" for name, text in fields.items()})

    account = shown["UpdatedUserInfo"]
    assert account.items() >= {**fields, "Id": ada.pk, "EmailAddress": "ada@example.com"}.items()
    assert get(UPDATE, NewFirstName=None) == shown
    del account["CompanyName"], account["PhoneNumber"]
    assert get(UPDATE, NewCompanyName="", NewPhoneNumber="  ") == shown


def test_remove_thumbnail_clears_field_and_deletes_file(
    call, ada, django_capture_on_commit_callbacks
):
    ada.thumbnail.save("ada.jpg", ContentFile(b"picture"))
    name = ada.thumbnail.name

    with django_capture_on_commit_callbacks(execute=True):
        response = call(REMOVE_THUMBNAIL)
        assert default_storage.exists(name), "only once the change is certain"

    assert "ThumbnailUrl" not in response.json()["UpdatedUserInfo"]
    ada.refresh_from_db()
    assert not ada.thumbnail
    assert not default_storage.exists(name)


def test_favorite_is_added_and_removed_for_this_account_only(call, get, ada):
    center = CenterFactory()
    of_another = FavoriteFactory(user=UserFactory(), center=center)

    for _ in range(2):
        added = get(FAVORITE, CenterId=center.pk, IsFavorite=True)["UpdatedCenter"]
        assert (added["IsFavorite"], added["IsNotFavorite"]) == (True, False)
        assert list(ada.favorites.values_list("center", flat=True)) == [center.pk]
    for _ in range(2):
        removed = get(FAVORITE, CenterId=center.pk, IsFavorite=False)["UpdatedCenter"]
        assert (removed["IsFavorite"], removed["IsNotFavorite"]) == (False, True)
        assert list(Favorite.objects.all()) == [of_another]
    inactive = CenterFactory(is_active=False)
    assert call(FAVORITE, CenterId=inactive.pk, IsFavorite=True).status_code == 404


# --- Passwords and devices ------------------------------------------------------------------------


def test_sign_out_deletes_only_this_token(client, get, ada, token):
    there = issue_token(ada)

    assert get("/api/sign-out") == {"Success": True}
    assert [is_signed_in(client, each) for each in (token, there)] == [False, True]


CHANGE = {"NewPassword": NEW_PASSWORD, "ConfirmNewPassword": NEW_PASSWORD}


@pytest.fixture
def change(call):
    body = {"CurrentPassword": PASSWORD, **CHANGE}
    return lambda **fields: call("/api/change-password", **body | fields)


def test_change_password_sends_an_email_and_signs_out_other_devices(client, change, ada, token):
    other, strangers = issue_token(ada), issue_token(UserFactory())
    assert change(CurrentPassword="wrong").status_code == 400
    assert ApiToken.objects.count() == 3

    response = change()

    assert (response.status_code, response.json()) == (200, {"Success": True})
    assert sign_in(client, ada.email, NEW_PASSWORD).status_code == 200
    assert [is_signed_in(client, each) for each in (token, other, strangers)] == [True, False, True]
    assert list(ada.mails.values_list("kind", "to")) == [("password changed", ada.email)]


@pytest.mark.parametrize(
    ("path", "field", "fields"),
    [
        ("/api/change-password", "CurrentPassword", CHANGE),
        ("/api/account/delete", "Password", {}),
        ("/api/account/change-email", "Password", {"NewEmailAddress": "b@example.com"}),
    ],
)
def test_wrong_password_counts_as_failed_sign_in(client, call, ada, path, field, fields):
    for _ in range(3):
        response = call(path, **fields, **{field: "wrong"})
        assert response.status_code == 400
        assert response.json()["Error"]["Details"] == f"{field}: This is not your current password."
    for _ in range(2):
        sign_in(client, ada.email, "wrong")

    response = call(path, **fields, **{field: PASSWORD})

    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 900
    assert sign_in(client, ada.email, PASSWORD).status_code == 429


def test_password_changed_elsewhere_meanwhile_is_not_overwritten(change, ada, monkeypatch):
    def changed_meanwhile(password, encoded):
        ada.set_password("an administrator's")
        ada.save()
        return True, False

    monkeypatch.setattr(sign_in_module, "verify_password", changed_meanwhile)

    assert change().status_code == 400
    ada.refresh_from_db()
    assert ada.check_password("an administrator's")


# --- The address of the calendar ------------------------------------------------------------------


@pytest.fixture
def get_url(get):
    return lambda **fields: get(CALENDAR, **fields)["CalendarUrl"]


def test_address_is_the_same_at_each_call_until_it_is_revoked(client, get_url, settings):
    settings.PUBLIC_URL = "https://rooms.example.com"
    bobs = post(client, CALENDAR, {"Token": issue_token(UserFactory())}).json()["CalendarUrl"]
    first = get_url()

    assert get_url(Revoke=False) == first
    second = get_url(Revoke=True)
    assert get_url() == second
    assert len({bobs, first, second}) == 3
    assert [client.get(each).status_code for each in (first, second, bobs)] == [404, 200, 200]
    # The secret of the address is not stored.
    secret = second.removeprefix("https://rooms.example.com/calendar/").removesuffix(".ics")
    assert len(secret) == 64
    stored = str(CalendarAddress.objects.values())
    assert not [each for each in (secret[:32], secret[32:]) if each in stored]


def test_changed_secret_key_keeps_the_address_while_the_old_key_is_known(client, get_url, settings):
    new_key = settings.SECRET_KEY
    settings.SECRET_KEY = OLD_KEY
    url = get_url()

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new_key, [OLD_KEY]
    assert get_url() == url
    assert client.get(url).status_code == 200

    settings.SECRET_KEY_FALLBACKS = []
    assert client.get(url).status_code == 200
    replaced = get_url()
    assert replaced != url
    assert get_url() == replaced
    assert client.get(url).status_code == 404


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_first_calls_at_the_same_time_get_the_same_address():
    user = UserFactory()

    secrets = run_concurrently([lambda: CalendarAddress.get_secret(user)] * 8)

    assert len(set(secrets)) == 1
