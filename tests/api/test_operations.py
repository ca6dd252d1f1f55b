"""Operations: how a request is processed, and the order of its checks."""

import json

import pytest


def test_response_has_success_first_then_fields_in_the_contracts_order(post):
    response = post("/api/mirror", {"HasCVV": False, "Text": "x", "Id": 1, "Unknown": 5})

    assert list(response.json().items()) == [
        ("Success", True), ("Id", 1), ("Text", "x"), ("HasCVV", False)
    ]  # fmt: skip


def test_every_response_forbids_caching_and_sniffing(post):
    for answer in (post("/api/nothing"), post("/api/who-am-i"), post("/api/unknown")):
        assert answer["Cache-Control"] == "no-store"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Request-ID"]


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options", "head", "trace"])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_other_method_than_post_is_405(client, method, suffix):
    response = getattr(client, method)(f"/api/who-am-i{suffix}")

    assert response.status_code == 405
    assert response["Allow"] == "POST"
    if method != "head":
        assert response.json()["Error"]["Summary"] == "MethodNotAllowed"


def test_other_method_is_answered_in_the_requested_format(client):
    assert client.get("/api/nothing.csv")["Content-Type"] == "text/csv; charset=utf-8"
    assert client.get("/api/nothing?callback=cb").content.startswith(b"/**/cb(")
    assert client.get("/api/nothing?callback=1").status_code == 405
    assert client.get("/api/nothing?format=xml").status_code == 405


def test_checks_are_made_in_order_and_the_first_failure_is_returned(client, settings):
    """Method, format, size and readability of the body, AppVersion, Token, fields."""
    settings.MINIMUM_APP_VERSION = "2"
    old = {"AppVersion": "1", "Token": "bad", "Id": "x"}

    def ask(body=old, method="post", query="", content_type="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"/api/who-am-i{query}"
        return getattr(client, method)(url, body, content_type=content_type).status_code

    assert ask(b"{" * 300_000, "put", "?format=xml") == 405
    assert ask(b"{" * 300_000, query="?format=xml") == 406
    assert ask(b"{" * 300_000) == 413
    assert ask(b"{" * 300_000, content_type="text/xml") == 413
    assert ask(b"{", content_type="text/xml") == 415
    assert ask(b"{") == 400
    assert ask() == 426
    assert ask({**old, "AppVersion": 5}) == 400
    assert ask({**old, "AppVersion": "2"}) == 401
    assert ask({**old, "AppVersion": "2", "Token": "good"}) == 400
    assert ask({**old, "AppVersion": "2", "Token": "good", "Id": 1}) == 200
    # The operation whose authentication finds nobody and says nothing.
    nobody = client.post("/api/nobody", {"AppVersion": "2"}, content_type="application/json")
    assert nobody.status_code == 401


def test_invalid_fields_are_named_one_per_line_in_the_contracts_order(refused):
    body = {
        "HasCVV": 1,
        "Items": [{"Id": 1}, *[{"Id": 1}] * 9, {"Name": 5}, {"Id": "x", "Tags": ["toolong"]}],
        "Text": 5,
        "Ids": "x",
        "Item": [],
        "Id": None,
    }

    assert refused("/api/echo", body) == (
        400,
        "InvalidRequest",
        "Text: Must be text.\n"
        "Ids: Must be a list.\n"
        "Item: Must be an object.\n"
        "Items.10.Id: Required.\n"
        "Items.10.Name: Must be text.\n"
        "Items.11.Id: Must be a whole number.\n"
        "Items.11.Tags.0: Must have at most 5 characters.\n"
        "HasCVV: Must be true or false.",
    )


# --- AppVersion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "version", "status"),
    [
        ("", "0.1", 200),
        ("2.10", "2.9", 426),
        ("2.10", "2.10", 200),
        ("2.10", "2.10.0", 200),
        ("2.10.0", "2.10", 200),
        ("2.10", "2.11", 200),
        ("2.10", "10", 200),
        ("2", "1.99.99", 426),
        ("2", "0", 426),
        ("0", "0.0", 200),
        ("2", None, 200),
        ("2", "", 200),
        ("2", "beta", 200),
        ("2", "1.0-beta", 200),
        ("2", "v1", 200),
        ("2", "1.", 200),
        ("2", "\u0661", 200),
        ("unreadable", "1", 200),
        ("2", "1" * 255, 200),
    ],
)
def test_app_version_below_the_minimum_is_426(post, settings, minimum, version, status):
    settings.MINIMUM_APP_VERSION = minimum

    response = post("/api/nothing", {"AppVersion": version})

    assert response.status_code == status
    if status == 426:
        assert response.json()["Error"]["Summary"] == "AppVersionTooOld"


@pytest.mark.parametrize("version", [1, 2.5, True, [], {}, "x" * 256, "\0", "\ud800"])
def test_app_version_of_another_type_is_400(refused, version):
    status, summary, details = refused("/api/nothing", {"AppVersion": version})

    assert (status, summary) == (400, "InvalidRequest")
    assert details.startswith("AppVersion: ")


def test_app_version_is_logged_with_the_request(post, caplog):
    with caplog.at_level("INFO", logger="roombook.request"):
        post("/api/nothing", {"AppVersion": "3.1\nforged"})

    assert caplog.records[-1].app_version == "3.1forged"
