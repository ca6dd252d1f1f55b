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


@pytest.mark.parametrize("path", ["/api/sign-in", "/docs", "/nothing"])
def test_charset_with_which_django_fails_is_400(path):
    for content_type in (
        "application/json; charset=undefined",
        "application/json; charset=a\0b",
        "application/json; charset*=nonsense''utf-8",
        "application/json; x*=utf-8''%ff; charset=utf-7\0",
        "; charset=zlib",
    ):
        answer = call("POST", path, content_type)
        assert answer == (400, {"Content-Length": "0"}, b""), content_type


@pytest.mark.django_db  # Django looks at open connections before each request
def test_charset_that_nobody_knows_is_refused_by_the_operation():
    status, headers, body = call("POST", "/api/sign-in", "application/json; charset=nonsense")

    assert (status, headers["Content-Type"]) == (415, "text/csv; charset=utf-8")
    assert body.startswith(b"Success")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs", "/nothing", "/calendar/nothing.ics"])
def test_head_gets_the_headers_of_get_without_a_body(path):
    status, headers, body = call("GET", path)

    answered, head_headers, head_body = call("HEAD", path)

    assert answered == status
    assert {**head_headers, "X-Request-ID": ""} == {**headers, "X-Request-ID": ""}
    assert body
    assert head_body == b""
