"""Reports to Sentry, received by a real HTTP server, contain no data of customers."""

import gzip
import json
from urllib.parse import urlsplit

from tests.test_startup import run
from tests.webhooks.receiver import receive

CARD_NUMBER = "4242 4242 4242 4242"
TOKEN, EMAIL, PASSWORD = "tok_8Zk2mQx9LwP4vB7nR1cT5yH3", "ada@example.com", "quiet-harbour-42"

# A crash in an operation, with private data in every place where a program may have them.
CRASH = f"""
import json, logging, sys
import django
django.setup()
import sentry_sdk
from django.test import Client
from accounts.views import SignIn

def fail(self, user, **fields):
    local = {CARD_NUMBER!r}
    try:
        raise ValueError(f"{{fields}} {TOKEN}")
    except ValueError as error:
        raise RuntimeError("{CARD_NUMBER} {EMAIL} {TOKEN}") from error

SignIn.perform = fail
response = Client(raise_request_exception=False).post(
    "/api/sign-in?Token={TOKEN}",
    data=json.dumps({{"EmailAddress": "{EMAIL}", "Password": "{PASSWORD}", "Token": "{TOKEN}"}}),
    content_type="application/json",
    headers={{"Cookie": "sessionid={TOKEN}", "Referer": "/x?{EMAIL}", "X-Request-ID": "abc-def"}},
)
assert response.status_code == 500
logger = logging.getLogger("roombook")
logger.error("Sent to %s", "{EMAIL}", extra={{"card": "{CARD_NUMBER}"}})
logger.error("Formatted: {EMAIL} {CARD_NUMBER} {TOKEN}")
sentry_sdk.flush(10)
"""


def read_envelope(headers, body):
    text = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
    return text.decode()


def test_report_names_the_error_and_its_place_but_nothing_of_the_customer():
    with receive() as sentry:
        ended = run(
            *("-c", CRASH, "one-argument@example.com"),
            DJANGO_SETTINGS_MODULE="roombook.settings",
            SENTRY_DSN=f"http://key@{urlsplit(sentry.url).netloc}/1",
            ALLOWED_HOSTS="testserver",
            SECURE_SSL_REDIRECT="false",
            DATABASE_URL="postgres://rooms:hidden@127.0.0.1:1/rooms",
        )

    assert ended.returncode == 0, ended.stderr
    envelopes = [read_envelope(*each) for each in sentry.requests]
    events = [json.loads(envelope.splitlines()[2]) for envelope in envelopes]
    crash, sent, formatted = events
    assert [each["type"] for each in crash["exception"]["values"]] == ["ValueError", "RuntimeError"]
    frame = crash["exception"]["values"][-1]["stacktrace"]["frames"][-1]
    assert (frame["function"], crash["tags"]) == ("fail", {"request_id": "abc-def"})
    assert sent["logentry"]["message"] == "Sent to %s"
    assert formatted["logentry"]["message"] == "Formatted: ... ... ..."
    everything = "".join(envelopes)
    for private in (CARD_NUMBER, "4242", TOKEN, EMAIL, PASSWORD, "one-argument", "sessionid"):
        assert private not in everything


def test_sdk_is_not_loaded_without_an_address():
    loaded = "import django, sys; django.setup(); assert 'sentry_sdk' not in sys.modules"

    ended = run("-c", loaded, DJANGO_SETTINGS_MODULE="roombook.settings")

    assert ended.returncode == 0, ended.stderr
