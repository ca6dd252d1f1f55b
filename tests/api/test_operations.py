"""Operations: how a request is processed, and the order of its checks."""

import json

import pytest

from tests.factories_people import UserFactory, issue_token

SIGN_IN, UPDATE = "/api/sign-in", "/api/account/update-info"


def test_every_response_forbids_caching_and_sniffing(post):
    for answer in (post(SIGN_IN), post("/api/unknown")):
        assert answer["Cache-Control"] == "no-store"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Request-ID"]


@pytest.mark.parametrize("method", ["get", "put", "delete", "options", "head"])
def test_other_method_than_post_is_405_in_the_requested_format(client, method):
    for suffix, content_type in (
        *(("", "application/json"), (".csv", "text/csv; charset=utf-8")),
        *(("?callback=1", "application/json"), ("?format=xml", "application/json")),
    ):
        response = getattr(client, method)(f"{SIGN_IN}{suffix}")

        assert (response.status_code, response["Allow"]) == (405, "POST")
        assert response["Content-Type"] == content_type
        assert method == "head" or b"MethodNotAllowed" in response.content


@pytest.mark.django_db
def test_checks_are_made_in_order_and_the_first_failure_is_returned(client, settings):
    """Method, format, size and readability of the body, AppVersion, Token, fields."""
    settings.MINIMUM_APP_VERSION = "2"
    old = {"AppVersion": "1", "Token": "bad", "NewFirstName": 5}
    good = {"AppVersion": "2", "Token": issue_token(UserFactory())}

    def ask(body=old, method="post", query="", content_type="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"{UPDATE}{query}"
        return getattr(client, method)(url, body, content_type=content_type).status_code

    assert ask(b"{" * 300_000, "put", "?format=xml") == 405
    assert ask(b"{" * 300_000, query="?format=xml") == 406
    assert ask(b"{" * 300_000, content_type="text/xml") == 413
    assert ask(b"{", content_type="text/xml") == 415
    assert ask(b"{") == 400
    assert ask() == 426
    assert ask({**old, "AppVersion": 5}) == 400
    assert ask({**old, "AppVersion": "2"}) == 401
    assert ask({**old, **good}) == 400
    assert ask({**old, **good, "NewFirstName": "Ada"}) == 200


# --- AppVersion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "version", "is_too_old"),
    [
        ("", "0.1", False),
        ("2.10", "2.9", True),
        ("2.10", "2.10.0", False),
        ("2.10.0", "2.10", False),
        ("2.10", "10", False),
        ("2", "0", True),
        ("2", "", False),
        ("2", "1.0-beta", False),
        ("2", "\u0661", False),
        ("unreadable", "1", False),
    ],
)
def test_app_version_below_the_minimum_is_426(refused, settings, minimum, version, is_too_old):
    settings.MINIMUM_APP_VERSION = minimum

    answer = refused(SIGN_IN, {"AppVersion": version})

    assert (answer == (426, "AppVersionTooOld", "")) is is_too_old
    assert answer[0] == (426 if is_too_old else 400)


def test_app_version_of_another_type_is_400(refused):
    for version in (1, "x" * 256):
        status, _, details = refused(SIGN_IN, {"AppVersion": version})
        assert (status, details.partition(":")[0]) == (400, "AppVersion")


def test_app_version_is_logged_with_the_request(post, caplog):
    with caplog.at_level("INFO", logger="roombook.request"):
        post(SIGN_IN, {"AppVersion": "3.1\nforged"})

    assert caplog.records[-1].app_version == "3.1forged"
