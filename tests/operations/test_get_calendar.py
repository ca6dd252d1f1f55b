"""POST /api/account/calendar"""

import pytest

from accounts.models import CalendarAddress
from tests.concurrency import run_concurrently
from tests.factories_people import UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/calendar"
OLD_KEY = "the-former-key-of-this-service-which-was-replaced-by-another-one"


def get_url(client, token, **fields):
    response = post(client, PATH, {"Token": token, **fields})
    assert response.status_code == 200
    assert list(response.json()) == ["Success", "CalendarUrl"]
    return response.json()["CalendarUrl"]


def test_address_is_the_same_at_each_call_until_it_is_revoked(client, token):
    bobs = get_url(client, issue_token(UserFactory()))
    first = get_url(client, token)

    assert get_url(client, token, Revoke=False) == first
    second = get_url(client, token, Revoke=True)
    assert get_url(client, token) == second
    assert len({bobs, first, second}) == 3
    assert client.get(first).status_code == 404
    assert client.get(second).status_code == 200
    assert client.get(bobs).status_code == 200


def test_get_calendar_answers_json_csv_and_jsonp(client, token, settings):
    settings.PUBLIC_URL = "https://rooms.example.com"
    url = get_url(client, token)
    secret = url.removeprefix("https://rooms.example.com/calendar/").removesuffix(".ics")

    assert len(secret) == 64
    assert int(secret, 16)
    answer = post_csv(client, PATH + ".csv", {"Token": token})
    assert table(answer) == [["Success", "CalendarUrl"], ["true", url]]
    wrapped = post(client, PATH + "?callback=go", {"Token": token})
    assert jsonp(wrapped, "go") == {"Success": True, "CalendarUrl": url}


def test_secret_is_not_stored(client, token):
    secret = get_url(client, token).rpartition("/")[2].removesuffix(".ics")

    stored = CalendarAddress.objects.get()
    assert not {secret, secret[:32], secret[32:]} & {stored.salt, stored.digest}


def test_changed_secret_key_keeps_the_address_while_the_old_key_is_known(client, token, settings):
    new_key = settings.SECRET_KEY
    settings.SECRET_KEY = OLD_KEY
    url = get_url(client, token)

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new_key, [OLD_KEY]
    assert get_url(client, token) == url
    assert client.get(url).status_code == 200

    settings.SECRET_KEY_FALLBACKS = []
    assert client.get(url).status_code == 200
    replaced = get_url(client, token)
    assert replaced != url
    assert get_url(client, token) == replaced
    assert client.get(url).status_code == 404


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_first_calls_at_the_same_time_get_the_same_address():
    user = UserFactory()

    secrets = run_concurrently([lambda: CalendarAddress.get_secret(user)] * 8)

    assert len(set(secrets)) == 1
