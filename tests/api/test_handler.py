"""No Content-Type header makes the service fail before it can answer."""

import subprocess
import sys
from io import BytesIO

import pytest

from roombook.handler import RoombookWSGIHandler


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
    started = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/api/nothing",
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
    assert int(line.split()[0]) == status
    assert dict(headers)["Content-Type"] == "text/csv; charset=utf-8"
    assert body.startswith(b"Success")


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
