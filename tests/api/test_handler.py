"""Django's handler and ours: Content-Type headers that Django cannot read, and HEAD."""

from io import BytesIO

import pytest

from roombook.handler import RoombookWSGIHandler


def call(method, path, content_type=""):
    """Return the status, the headers and the body."""
    started = []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "format=csv",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": "3",
        "wsgi.input": BytesIO(b"{ }"),
        "wsgi.url_scheme": "http",
    }
    body = b"".join(RoombookWSGIHandler()(environ, lambda *start: started.append(start)))
    [(line, headers)] = started
    return int(line.split()[0]), dict(headers), body


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json; charset=idna", 415),
        ("application/json; charset=nonsense", 415),
        ("application/json; ;;; =", 200),
        ("text/csv; charset=utf-16", 400),
    ],
)
@pytest.mark.django_db  # Django looks at open connections before each request
def test_content_type_is_answered_in_the_requested_format(content_type, status):
    answered, headers, body = call("POST", "/api/nothing", content_type)

    assert answered == status
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert body.startswith(b"Success")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=zlib",
        "application/json; charset=undefined",
        "application/json; charset=a\0b",
        "application/json; charset*=nonsense''utf-8",
        "application/json; x*=utf-8''%ff; charset=utf-7\0",
        "text/csv; charset=rot13",
        "; charset=zlib",
    ],
)
@pytest.mark.parametrize("path", ["/api/nothing", "/docs", "/nothing"])
def test_charset_with_which_django_fails_is_400(content_type, path):
    assert call("POST", path, content_type) == (400, {"Content-Length": "0"}, b"")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs", "/nothing", "/calendar/nothing.ics"])
def test_head_gets_the_headers_of_get_without_a_body(path):
    status, headers, body = call("GET", path)

    answered, head_headers, head_body = call("HEAD", path)

    varying = {"X-Request-ID"}
    assert answered == status
    assert {**head_headers, **dict.fromkeys(varying)} == {**headers, **dict.fromkeys(varying)}
    assert body
    assert head_body == b""
