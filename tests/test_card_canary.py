"""Card numbers and security codes go to the gateway and nowhere else (B8.2)."""

import io
import logging
import re
from datetime import date, datetime

import pytest
from django.db import connection
from django.test import Client

from payments import lifecycle
from roombook.logging import JsonLogFormatter, PlainLogFormatter, RequestIdFilter
from tests.factories_people import UserFactory
from tests.factories_reservations import NOW, START, make_draft, make_room
from tests.gateway_faults import add_fault
from tests.http import post, post_csv

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

GOOD, AMEX, MASTERCARD = "4242424242424242", "378282246310005", "5555555555554444"
DECLINED, INSUFFICIENT_FUNDS, MISTYPED = "4000000000000002", "4000000000009995", "4242424242424241"
NUMBERS = [GOOD, AMEX, MASTERCARD, DECLINED, INSUFFICIENT_FUNDS, MISTYPED]
# With a zero, because no id of a row has one.
CODE, AMEX_CODE = "073", "0739"
CODES = [CODE, AMEX_CODE]

# Without separators, and in groups as people type them.
NOTATIONS = [
    lambda number: number,
    lambda number: f"{number[:4]} {number[4:8]} {number[8:12]} {number[12:]}",
    lambda number: f"{number[:4]}-{number[4:8]}-{number[8:12]}-{number[12:]}",
]


def card(number, **fields):
    code = AMEX_CODE if number == AMEX else CODE
    return {
        "FirstName": "Ada",
        "LastName": "Lovelace",
        "CreditCardNumber": number,
        "SecurityCode": code,
        "ExpirationDate": "2031-02-10T00:00:00Z",
        "BillingAddress": {"Street1": "1 Main Street", "City": "Denver"},
        **fields,
    }


class Canary:
    """Searches the database, the logs and the responses for card numbers and security codes."""

    def __init__(self):
        self.answers = []
        self.client = Client(raise_request_exception=False)
        self.logs = {}
        for formatter in (PlainLogFormatter, JsonLogFormatter):
            handler = logging.StreamHandler(io.StringIO())
            handler.setFormatter(formatter())
            handler.addFilter(RequestIdFilter())
            handler.setLevel(logging.DEBUG)
            self.logs[formatter.__name__] = handler

    def post(self, path, body, **extra):
        response = post(self.client, path, body, **extra)
        self.answers.append(response)
        return response

    def record(self, response):
        self.answers.append(response)
        return response

    def find_leaks(self):
        texts = [
            *((f"log {name}", handler.stream.getvalue()) for name, handler in self.logs.items()),
            *((f"answer to {r.request['PATH_INFO']}", render_response(r)) for r in self.answers),
            *rows(),
        ]
        assert all(handler.stream.getvalue() for handler in self.logs.values())
        return [
            f"{secret} in {where}"
            for where, text in texts
            for secret in (*NUMBERS, *CODES)
            if contains(text, secret)
        ]


def render_response(response):
    headers = " ".join(f"{name}: {value}" for name, value in response.items())
    return headers + "\n" + response.content.decode()


def rows():
    """Every value of every table that may contain text."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    if not isinstance(value, int | date | datetime | None):
                        yield f"{table}.{name}", str(value)


def contains(text, secret):
    if secret in CODES:
        # Codes are short: match them only as separate words, not in a price, a time or a hash.
        return re.search(rf"(?<![\w.-]){secret}(?![\w.-])", text) is not None
    # Allow common separators between the digits.
    return re.search(r"[\s.,_-]{0,3}".join(secret), text) is not None


@pytest.fixture
def canary():
    canary = Canary()
    root = logging.getLogger()
    for handler in canary.logs.values():
        root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        yield canary
    finally:
        root.setLevel(level)
        for handler in canary.logs.values():
            root.removeHandler(handler)


def test_canary_finds_a_leaked_card():
    """The negative control: the canary finds a card that the test leaks."""
    for number in NUMBERS:
        for notation in NOTATIONS:
            assert contains(f"x{notation(number)}y", number)
    assert contains('{"SecurityCode": "073"}', CODE)
    assert not contains("073.5 ms, $1073, a073f", CODE)
    ada = UserFactory(last_name=NOTATIONS[1](GOOD), company_name=AMEX_CODE)
    found = [name for name, text in rows() if contains(text, GOOD) or contains(text, AMEX_CODE)]
    # The text for searches repeats the names.
    columns = ("last_name", "company_name", "search_text")
    assert found == [f"accounts_user.{column}" for column in columns]
    ada.delete()


def test_card_number_and_code_are_stored_and_shown_nowhere(canary, ada, token, monkeypatch):
    room = make_room()

    def checkout(number, day, *, expected, **fields):
        reservation = make_draft(ada, room, start=START.replace(day=day))
        body = {"Token": token, "ReservationId": reservation.pk, "PaymentInfo": card(number)}
        response = canary.post("/api/reservations/checkout", {**body, **fields})
        assert response.status_code == expected, response.content
        return reservation

    # Paid, declined, in test mode, saved, cancelled.
    checkout(GOOD, 3, expected=200, SavePaymentInfo=True)
    checkout(NOTATIONS[2](AMEX), 4, expected=400)  # grouped, so that its code is too long
    checkout(AMEX, 4, expected=200, SavePaymentInfo=True)
    checkout(DECLINED, 5, expected=402)
    checkout(NOTATIONS[1](INSUFFICIENT_FUNDS), 5, expected=402, SavePaymentInfo=True)
    checkout(GOOD, 8, expected=200, TestMode=True)
    checkout(DECLINED, 8, expected=402, TestMode=True)
    paid = checkout(NOTATIONS[2](MASTERCARD), 9, expected=200)
    canary.post("/api/reservations/cancel", {"Token": token, "ReservationId": paid.pk})

    def send(path, expected=None, **body):
        response = canary.post(f"/api/{path}", {"Token": token, **body})
        assert expected in {None, response.status_code}, (path, response.content)

    # Saved cards.
    for number, status in ((GOOD, 200), (DECLINED, 402), (MISTYPED, 400), (AMEX, 200)):
        send("account/update-payment-info", status, PaymentInfo=card(number))

    # A number in other fields.
    drafted = make_draft(ada, room, start=START.replace(day=16))
    address = {"Latitude": float(f"{GOOD[:2]}.{GOOD[2:]}")}
    send("account/update-payment-info", 200, PaymentInfo=card(GOOD, BillingAddress=address))
    times = {"StartDate": "2027-03-10T09:00:00", "EndDate": "2027-03-10T10:00:00"}
    for notation in NOTATIONS:
        number = notation(GOOD)
        for name in ("FirstName", "LastName", "CompanyName"):
            send("account/update-payment-info", 400, PaymentInfo=card(GOOD, **{name: number}))
            send("account/update-info", 400, **{f"New{name}": number})
        address = {"Street2": number}
        send("account/update-payment-info", 400, PaymentInfo=card(GOOD, BillingAddress=address))
        guests = [{"Name": number}]
        send("reservations/create", 400, MeetingRoomId=room.pk, **times, Attendees=guests)
        send("reservation/update-promo-code", ReservationId=paid.pk, PromoCode=number)
        send("sign-in", EmailAddress=number, Password=number)
        send("locations/search", Query=number)
        code = {"PaymentInfo": card(GOOD), "PartnerCode": number}
        send("reservations/checkout", 400, ReservationId=drafted.pk, **code)
        send("account/reservation", Id=paid.pk, X=number)
        send(number)
        send("sign-out", 400, Token=number, AppVersion=int(GOOD))
        send("sign-out", 401, Token=number, AppVersion=number)
        # The wrong type, the wrong format, and malformed requests.
        body = {"Token": token, "ReservationId": number, "PaymentInfo": number}
        send("reservations/checkout", 400, **body)
        canary.record(post_csv(canary.client, "/api/reservations/checkout.csv", body))
        text = f'{{"PaymentInfo": {{"CreditCardNumber": "{number}", "SecurityCode": 073'
        for content_type in ("application/json", "text/csv", "text/plain"):
            canary.record(
                canary.client.post("/api/reservations/checkout", text, content_type=content_type)
            )

    # A gateway that does not respond, and crashes while a variable holds the card.
    add_fault(operation="*", kind="timeout_before", times=1)
    checkout(GOOD, 11, expected=200)
    authorize = lifecycle.authorize_payment

    def crash(payment, source, **kwargs):
        number, code = source.number, source.security_code
        raise RuntimeError(f"The card {number} was too much ({source!r}, {code!r}).")

    monkeypatch.setattr(lifecycle, "authorize_payment", crash)
    checkout(GOOD, 12, expected=500)
    monkeypatch.setattr(lifecycle, "authorize_payment", authorize)

    def crash_early(*args, **kwargs):
        raise KeyError(kwargs["payment_info"]["credit_card_number"])

    monkeypatch.setattr(lifecycle, "get_payment_source", crash_early)
    checkout(NOTATIONS[1](GOOD), 15, expected=500)

    assert canary.find_leaks() == []
