"""CARD_NUMBERS=refuse: no digit of a card passes the parser (B21.4)."""

import json
import os
import subprocess
import sys

import pytest

from roombook.card_numbers import has_digits_of_a_card
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import NOW, make_draft
from tests.http import post, post_csv
from tests.test_card_canary import GOOD, MISTYPED, NOTATIONS, card
from tests.test_card_canary import canary as canary
from tests.test_startup import ROOT, VALID

CHECKOUT, UPDATE = "/api/reservations/checkout", "/api/account/update-payment-info"
# A Visa number that no table of test cards contains.
UNKNOWN_NUMBER = "4929771250863319"

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


@pytest.fixture
def refusing(settings):
    settings.CARD_NUMBERS = "refuse"


@pytest.fixture
def details(client, refusing):
    """Return the lines of Details of a refused request."""

    def send(body, path=CHECKOUT, send=post):
        response = send(client, path, body)
        error = response.json()["Error"]
        assert (response.status_code, error["Summary"]) == (400, "InvalidRequest")
        return error.get("Details", "").splitlines()

    return send


def without_card_data(**fields):
    body = card(GOOD, **fields)
    return {name: body[name] for name in body if name not in {"CreditCardNumber", "SecurityCode"}}


@pytest.mark.parametrize("path", [CHECKOUT, UPDATE])
def test_number_and_code_are_refused_and_the_way_out_is_named(details, client, path):
    lines = details({"PaymentInfo": card(NOTATIONS[1](GOOD))}, path)

    assert [line.partition(":")[0] for line in lines] == [
        "PaymentInfo.CreditCardNumber",
        "PaymentInfo.SecurityCode",
    ]
    assert all("api/account/create-payment-setup" in line for line in lines)
    cells = {"PaymentInfo.CreditCardNumber": GOOD, "PaymentInfo.SecurityCode.0": "123"}
    assert len(details(cells, path, post_csv)) == 2
    message = post(client, path, {"PaymentInfo": card(GOOD)}).json()["Error"]["Message"]
    assert message.startswith("Card numbers are not accepted here.")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        # The right field, in another type.
        (CHECKOUT, {"PaymentInfo": {"CreditCardNumber": int(GOOD)}}),
        (CHECKOUT, {"PaymentInfo": {"CreditCardNumber": {"Number": [4242] * 4}}}),
        (CHECKOUT, {"PaymentInfo": {"CreditCardNumber": MISTYPED}}),
        (CHECKOUT, {"PaymentInfo": {"CreditCardNumber": "4242"}}),
        (CHECKOUT, {"PaymentInfo": {"SecurityCode": 123}}),
        # Another field of PaymentInfo, known and unknown.
        (CHECKOUT, {"PaymentInfo": {"LastName": NOTATIONS[2](MISTYPED)}}),
        (UPDATE, {"PaymentInfo": {"BillingAddress": {"Street2": GOOD}}}),
        (UPDATE, {"PaymentInfo": {"BillingAddress": {"Latitude": float(GOOD)}}}),
        (UPDATE, {"PaymentInfo": {"BillingAddress": [GOOD]}}),
        (CHECKOUT, {"PaymentInfo": {"ExpirationDate": GOOD}}),
        (CHECKOUT, {"PaymentInfo": {"creditCardNumber": MISTYPED}}),
        (CHECKOUT, {"PaymentInfo": {"Number": {"Parts": ["4242", "4242", 4242, "4241"]}}}),
        (CHECKOUT, {"PaymentInfo": {GOOD: True}}),
        # PaymentInfo that is no object, or has another name.
        (CHECKOUT, {"PaymentInfo": MISTYPED}),
        (CHECKOUT, {"PaymentInfo": [{"CreditCardNumber": MISTYPED}]}),
        (CHECKOUT, {"paymentinfo": {"CreditCardNumber": MISTYPED}}),
        ("/api/reservations/create", {"PaymentInfo": card(MISTYPED)}),
        ("/api/sign-in", {"CreditCard": MISTYPED}),
        # Elsewhere in an operation that takes a card.
        (CHECKOUT, {"PartnerCode": NOTATIONS[1](GOOD)}),
        (CHECKOUT, {"AppVersion": GOOD}),
        (CHECKOUT, {"Extra": {"Deep": [{"Deeper": NOTATIONS[1](GOOD)}]}}),
        (CHECKOUT, {GOOD: {}}),
        (UPDATE, {"Token": "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢"}),
    ],
)
def test_number_in_any_place_is_refused_and_not_repeated(details, path, fields):
    lines = details(fields, path)

    assert len(lines) == 1
    assert "create-payment-setup" in lines[0]
    assert not has_digits_of_a_card(lines[0])
    assert "42" not in lines[0]


def test_other_fields_keep_their_meaning(details, client, settings):
    body = {
        "Token": issue_token(UserFactory()),
        # Times in milliseconds are no card numbers, nor are coordinates.
        "SentAt": 1_761_234_567_890,
        "PaymentInfo": without_card_data(
            CreditCardNumber="", BillingAddress={"Latitude": 39.7392358, "Longitude": -104.990251}
        ),
    }
    expected = ["PaymentInfo.CreditCardNumber: A card number is needed."]
    assert details(body, UPDATE) == expected
    settings.CARD_NUMBERS = "accept"
    assert details(body, UPDATE) == expected
    # Numbers of other operations are none of its business.
    settings.CARD_NUMBERS = "refuse"
    query = {"Token": body["Token"], "Query": "4929 7712 5086 3319"}
    assert (
        "create-payment-setup" not in post(client, "/api/locations/search", query).content.decode()
    )


def test_refused_number_is_in_no_log_row_or_response(canary, refusing):
    ada = UserFactory()
    token, draft = issue_token(ada), make_draft(ada)
    for notation in NOTATIONS:
        fields = {"Token": token, "ReservationId": draft.pk, "PaymentInfo": card(notation(GOOD))}
        for path in (CHECKOUT, UPDATE):
            assert canary.post(path, fields).status_code == 400
            assert (
                canary.record(post_csv(canary.client, path, {"Token": notation(GOOD)})).status_code
                == 400
            )

    assert canary.find_leaks() == []
    draft.refresh_from_db()
    assert draft.status == "New"
    assert not hasattr(ada, "saved_card")


# Answers the requests on its standard input. Then it searches every object of its memory, the log,
# and error reports that tell more than ours do, for the number whose digits are its arguments.
SEARCH = r"""
import gc, io, json, logging, os, re, sys

import django
django.setup()
import sentry_sdk
from django.core.handlers.wsgi import WSGIHandler
from django.views.debug import ExceptionReporter
from roombook.api.operations import Operation

# This text does not match itself.
number = re.compile("".join(f"[{digit}][ -]?" for digit in sys.argv[1:]))
kept, reports, log = [], [], io.StringIO()
handler = logging.StreamHandler(log)
handler.setFormatter(logging.Formatter("%(message)s %(args)s"))
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.DEBUG)
sentry_sdk.init(
    dsn="http://key@127.0.0.1:1/1",
    before_send=lambda event, hint: reports.append(repr(event)),
    include_local_variables=True,
    max_request_body_size="always",
    default_integrations=False,
    auto_enabling_integrations=False,
)
handle_exception = Operation.handle_exception

def handle_and_keep(self, error):
    # All that lives past the parser: the request, the error with its frames, the stack.
    kept.append((self, error, sys._getframe()))
    reporter = ExceptionReporter(self.request._request, type(error), error, error.__traceback__)
    reports.extend([reporter.get_traceback_html(), reporter.get_traceback_text()])
    sentry_sdk.capture_exception(error)
    return handle_exception(self, error)

Operation.handle_exception = handle_and_keep

class Body:
    def __init__(self, length):
        self.length = length

    def read(self, size):
        data = b""
        while len(data) < self.length:
            data += os.read(0, self.length - len(data))
        return data

    readline = read

def find_leaks():
    for holder in gc.get_objects():
        for each in [holder, *gc.get_referents(holder)]:
            if isinstance(each, io.BytesIO):
                each = each.getvalue()
            if isinstance(each, bytes | bytearray):
                each = each.decode("latin-1")
            if isinstance(each, str | int | float) and number.search(str(each)):
                yield type(holder).__name__
    for name, texts in (("report", reports), ("log", [log.getvalue()])):
        if any(map(number.search, texts)):
            yield name

def read_line():
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line

statuses = []
application = WSGIHandler()
while line := read_line():
    path, content_type, length = json.loads(line)
    environ = {
        "REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(length), "wsgi.input": Body(length), "wsgi.url_scheme": "http",
        "SERVER_NAME": "rooms.example.com", "SERVER_PORT": "80", "wsgi.errors": sys.stderr,
    }
    application(environ, lambda status, headers: statuses.append(int(status[:3])))
print(json.dumps([statuses, len(kept), len(reports), sorted(set(find_leaks()))]))
"""


@pytest.mark.parametrize("setting", ["refuse", "accept"])
def test_memory_log_and_error_reports_hold_no_digit_of_a_refused_number(setting):
    ended = search_memory(setting, bodies_with(UNKNOWN_NUMBER))

    statuses, kept, reports, holders = json.loads(ended.stdout.splitlines()[-1])
    if setting == "refuse":
        assert statuses == [400, 400, 400, 400, 400, 415, 400, 400]
        assert holders == []
    else:
        # The control: past the parser, the fields are in memory and in reports with variables.
        assert statuses[0] == 503  # This process has no database.
        assert {"dict", "report"} <= set(holders)
    assert kept == len(statuses)
    assert reports == 3 * kept


def bodies_with(number):
    spaced = NOTATIONS[1](number)
    text = json.dumps({"Token": "x", "PaymentInfo": card(spaced)})
    return [
        (CHECKOUT, "application/json", text),
        (UPDATE, "application/json; charset=utf-16", text),
        (UPDATE, "application/json", json.dumps({"PaymentInfo": {"cardNo": int(number)}})),
        (CHECKOUT, "text/csv", f"PaymentInfo.CreditCardNumber\n{spaced}\n"),
        (CHECKOUT, "text/csv", f"Token,{number}\nx,y\n"),
        # Of another type, not finished, in another charset.
        (CHECKOUT, "application/x-www-form-urlencoded", f"CreditCardNumber={number}"),
        (CHECKOUT, "application/json", text[:-2]),
        (CHECKOUT, "application/json; charset=ascii", f"{text}\N{EURO SIGN}"),
    ]


def search_memory(setting, bodies):
    requests = b""
    for path, content_type, text in bodies:
        body = text.encode("utf-16" if "utf-16" in content_type else "utf-8")
        requests += json.dumps([path, content_type, len(body)]).encode() + b"\n" + body
    ended = subprocess.run(
        [sys.executable, "-c", SEARCH, *UNKNOWN_NUMBER],
        input=requests,
        env={
            **VALID,
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "DEBUG": "true",
            "DATABASE_URL": "sqlite:////nowhere/rooms.sqlite3",
            "CARD_NUMBERS": setting,
        },
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]
    return ended
