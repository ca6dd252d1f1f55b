"""Django's handler and ours: Content-Type headers that Django cannot read, and HEAD."""

import subprocess
import sys
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
        ("application/json; charset=zlib", 415),
        ("application/json; charset=undefined", 415),
        ("application/json; charset=idna", 415),
        ("application/json; charset=a\0b", 415),
        ("application/json; charset*=nonsense''utf-8", 200),
        ("application/json; x*=utf-8''%ff; charset=utf-16", 400),
        ("application/json; ;;; =", 200),
        ("text/csv; charset=zlib", 415),
        ("; charset=zlib", 415),
    ],
)
@pytest.mark.django_db  # Django looks at open connections before each request
def test_any_content_type_is_answered_in_the_requested_format(content_type, status):
    answered, headers, body = call("POST", "/api/nothing", content_type)

    assert answered == status
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert body.startswith(b"Success")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs/guide/", "/nothing", "/calendar/nothing.ics"])
def test_head_gets_the_headers_of_get_without_a_body(path):
    status, headers, body = call("GET", path)

    answered, head_headers, head_body = call("HEAD", path)

    varying = {"X-Request-ID"}
    assert answered == status
    assert {**head_headers, **dict.fromkeys(varying)} == {**headers, **dict.fromkeys(varying)}
    assert body
    assert head_body == b""


LOOK_UP_CODECS = """
import codecs, contextlib, sys, tracemalloc
from roombook.handler import limit_codec_names

if "limited" in sys.argv:
    limit_codec_names()
codecs.lookup("ISO-8859-15")
tracemalloc.start()
for number in range(1000):
    with contextlib.suppress(LookupError):
        codecs.lookup("x" * 4000 + str(number))
print(tracemalloc.get_traced_memory()[0] > 1_000_000)
"""


@pytest.mark.parametrize("limit", ["limited", "control"])
def test_names_of_unknown_charsets_stay_in_memory_only_without_limit(limit):
    command = [sys.executable, "-c", LOOK_UP_CODECS, limit]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)

    assert finished.stdout.strip() == str(limit == "control")
