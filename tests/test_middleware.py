"""Request ids, the request log, security headers and client addresses."""

import json
import logging

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from roombook.card_numbers import mask_cards
from roombook.logging import JsonLogFormatter, PlainLogFormatter, request_id
from roombook.middleware import (
    MAX_LOGGED_PATH_LENGTH,
    USABLE_REQUEST_ID,
    ContentSecurityPolicyMiddleware,
    RequestIdMiddleware,
    RequestLogMiddleware,
    get_client_address,
)

requests = RequestFactory()


def ok(_):
    return HttpResponse("fine")


# --- Request id ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    # The last two would be masked in the log.
    "offered",
    ["", "x" * 65, "a\r\nSet-Cookie: x", "é", "4242424242424242", "a.4242-4242-4242-4242"],
)
def test_unusable_request_id_is_replaced_by_letters(offered):
    request = requests.get("/")
    request.META["HTTP_X_REQUEST_ID"] = offered

    made = {RequestIdMiddleware(ok)(request)["X-Request-ID"] for _ in range(2)}

    assert len(made) == 2
    for each in made:
        assert each.isalpha()
        assert USABLE_REQUEST_ID.fullmatch(each)


@given(st.from_regex(USABLE_REQUEST_ID, fullmatch=True))
def test_usable_or_new_request_id_is_returned_and_in_every_log_line(offered):
    lines = []

    def view(_):
        record = logging.makeLogRecord({"msg": "12", "request_id": request_id.get()})
        lines.extend(how().format(record) for how in (PlainLogFormatter, JsonLogFormatter))
        return HttpResponse()

    returned = RequestIdMiddleware(view)(requests.get("/", headers={"X-Request-ID": offered}))[
        "X-Request-ID"
    ]

    assert returned == offered or mask_cards(offered) != offered
    assert len(lines) == 2
    assert all(returned in line for line in lines)
    assert request_id.get() == "-", "what is logged later is of no request"


# --- The line in the log ------------------------------------------------------------------------


def test_request_log_has_one_line_without_body_query_or_headers(caplog):
    caplog.set_level(logging.INFO)
    request = requests.post(
        "/api/sign-in?Token=in-the-query",
        data=json.dumps({"Password": "in-the-body"}),
        content_type="application/json",
        headers={"Authorization": "in-a-header"},
    )
    request.app_version = "2.4"

    RequestLogMiddleware(ok)(request)

    (record,) = caplog.records
    assert record.name == "roombook.request"
    assert (record.method, record.path, record.status) == ("POST", "/api/sign-in", 200)
    assert record.app_version == "2.4"
    assert record.ms >= 0
    assert "in-" not in str(record.__dict__).replace("sign-in", "")


@pytest.mark.parametrize(
    "path",
    [
        *("/api/4242 4242 4242 4242", "/api/" + "\uff14\uff12" * 8, "/" + "x" * 190 + "4242" * 4),
        *("/a%0AINFO forged", "/api/" + "1-" * 1000),
    ],
)
def test_logged_path_is_one_short_line_without_card_numbers(caplog, path):
    caplog.set_level(logging.INFO)

    RequestLogMiddleware(ok)(requests.get(path))

    assert "42424242" not in caplog.messages[0].replace("%20", "")
    assert "%EF%BC%94" not in caplog.messages[0].partition("card")[0]
    assert "\n" not in caplog.messages[0]
    assert len(caplog.records[0].path) <= MAX_LOGGED_PATH_LENGTH


# --- Host ---------------------------------------------------------------------------------------


def test_request_for_an_unknown_host_gets_the_error_envelope(client):
    response = client.post("/api/sign-in", headers={"Host": "evil.example.com"})

    assert response.status_code == 400
    assert response.json()["Success"] is False
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert "evil" not in response.content.decode()
    assert "X-Request-ID" in response


# --- Security policy ----------------------------------------------------------------------------


def get_policy(response=None):
    view = ContentSecurityPolicyMiddleware(lambda _: response or HttpResponse())
    return view(requests.get("/")).get("Content-Security-Policy")


def test_content_security_policy_allows_this_host_and_that_of_media_only(settings, client):
    for policy in (get_policy(), client.get("/docs")["Content-Security-Policy"]):
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    settings.MEDIA_URL = "https://pictures.example.com/rooms/"
    assert "img-src 'self' https://pictures.example.com;" in get_policy()


def test_views_set_their_own_policy_and_debug_pages_of_errors_have_none(settings):
    own = {"Content-Security-Policy": "its own"}
    assert get_policy(HttpResponse(headers=own)) == "its own"
    settings.DEBUG = True
    assert get_policy(HttpResponse(status=500)) is None


# --- Network address ----------------------------------------------------------------------------


def address(forwarded, remote="10.0.0.9"):
    request = requests.get("/", REMOTE_ADDR=remote)
    if forwarded is not None:
        request.META["HTTP_X_FORWARDED_FOR"] = forwarded
    return get_client_address(request)


@pytest.mark.parametrize(
    ("proxies", "forwarded", "seen"),
    [
        (0, None, "10.0.0.9"),
        (0, "1.1.1.1", "10.0.0.9"),
        (1, "1.1.1.1", "1.1.1.1"),
        (1, "6.6.6.6, 1.1.1.1", "1.1.1.1"),
        (2, "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
        (2, "1.1.1.1", "1.1.1.1"),
        (1, "", "10.0.0.9"),
        (1, "nonsense", "10.0.0.9"),
        (1, " 2001:DB8::1 ", "2001:db8::1"),
    ],
)
def test_client_address_trusts_only_our_proxies(settings, proxies, forwarded, seen):
    settings.TRUSTED_PROXIES = proxies

    assert address(forwarded) == seen


# --- Requests to the API --------------------------------------------------------------------------


@pytest.mark.django_db
def test_api_uses_neither_session_nor_cookies_and_redirects_to_no_slash(client):
    client.cookies["sessionid"] = "whatever"

    response = client.post("/api/sign-in", {}, content_type="application/json")

    assert response.status_code == 400
    assert not response.wsgi_request.session.accessed
    assert not response.cookies
    assert "Cookie" not in response.get("Vary", "")
    assert client.post("/api/sign-in/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/sign-in", "/api/sign-in.csv", "/api/no-such-thing", "/api"])
def test_api_response_has_policy_and_content_length(client, path):
    response = client.post(path, {}, content_type="application/json")

    assert int(response["Content-Length"]) == len(response.content) > 0
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert USABLE_REQUEST_ID.fullmatch(response["X-Request-ID"])
