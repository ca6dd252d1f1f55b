"""Card numbers and security codes are nowhere but in the call to the gateway.

All test numbers are paid with, with crashes in between. Then everything that was written is
searched: a dump, the files of the database with their journal, logs, e-mails and error reports.
tests/test_card_canary.py sends numbers in all other fields.
"""

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from django.db import connection

from payments.gateways.sandbox import DECLINE_MESSAGES, NOT_A_TEST_CARD, OUTCOMES
from reservations.models import Partner
from tests.faults.client import BROKEN_CONNECTION, Answer
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, SECURITY_CODE, World, card

AMEX_CODE = "0739"
# Valid checksums but no test cards; the checksum of the last one is wrong.
STRANGERS = ["4929000000006", "5404000000000001", "4242424242424241"]
NUMBERS = [*OUTCOMES, *STRANGERS]
# The numbers to send: all, or every third in the short form. All are searched for.
SENT = NUMBERS if LONG else [*NUMBERS[::3], *STRANGERS]


def grouped(number: str, by: str) -> str:
    if number.startswith(("34", "37")):
        return by.join([number[:4], number[4:10], number[10:]])
    return by.join(number[n : n + 4] for n in range(0, len(number), 4))


def notations(number: str) -> list[str]:
    return [number, grouped(number, " "), grouped(number, "-")]


def code_of(number: str) -> str:
    return AMEX_CODE if number.startswith(("34", "37")) else SECURITY_CODE


def send_cards_everywhere(service) -> list[Answer]:
    """Send each number in valid and invalid requests. Returns the answers."""
    with service.database.open():
        world = World(service)
        customers = [world.customer() for _ in SENT]
        drafts = [world.draft(each, world.room()).pk for each in customers]
    received: list[Answer] = []
    for n, (number, customer, pk) in enumerate(zip(SENT, customers, drafts, strict=True)):
        phone = customer.client
        paying = card(notations(number)[n % 3], code_of(number))
        received.append(phone.checkout(pk, paying, TestMode=True))
        if number not in STRANGERS:
            # For the others, the sandbox's message names a test number, which is stored.
            received.append(phone.checkout(pk, paying, SavePaymentInfo=True))
        received.append(phone.post("account/update-payment-info", PaymentInfo=paying))
        received.append(
            phone.post(
                "account/update-payment-info",
                PaymentInfo=paying | {"ExpirationDate": "2001-01-01T00:00:00Z"},
            )
        )
    send_unreadable_requests(service.port)
    return received


def send_unreadable_requests(port: int) -> None:
    """Send a card where the server expects the first line or a header of a request."""
    for number in notations("4242424242424242"):
        for text in (
            f'"CreditCardNumber": "{number}"}}',
            f"GET /?card={number.replace(' ', '+')} HTTP/9.9",
            f"GET / HTTP/1.1\r\nX Card: {number}",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connected:
                connected.sendall(f"{text}\r\n\r\n".encode())
                assert connected.recv(1000).startswith(b"HTTP/1.1 400 ")


def crash_with_a_card(service) -> None:
    """Crash a worker, and let a library put the number into its exception."""
    with service.database.open():
        world = World(service)
        customer = world.customer()
        drafts = [world.draft(customer, world.room()).pk for _ in range(3)]
    first, second, third = drafts
    service.crash("in authorize")
    assert customer.client.checkout(first, CARD).status == BROKEN_CONNECTION
    service.explode("after authorize")
    answer = customer.client.checkout(second, CARD)
    assert (answer.status, answer.code) == (500, "InternalError")
    assert customer.client.checkout(third, CARD).code == "Confirmed"


def hits(places: list[Path], folder: Path) -> list[str]:
    """The files that contain a number in any notation."""
    needles = folder / "needles"
    needles.write_text("\n".join(text for number in NUMBERS for text in notations(number)))
    done = subprocess.run(
        ["grep", "-r", "-a", "-l", "-F", "-f", needles, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    # 2 means that a file disappeared during the search.
    assert done.returncode in {0, 1, 2}
    needles.unlink()
    return done.stdout.split("\n")[:-1]


def codes_in(text: str) -> list[str]:
    """The security codes in a text. Nothing else looks like them because of the leading zero."""
    return re.findall(rf"(?<![\w.:+-])(?:{SECURITY_CODE}|{AMEX_CODE})(?![\w])", text)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, start):
    """A service, and a function that lists the files of its database."""
    if request.param != connection.vendor.removesuffix("ql"):
        pytest.skip(f"runs on {connection.vendor}")
    if connection.vendor == "sqlite":
        service = start(FAULTS_LEASE_SECONDS="1")
        file = Path(service.database.settings["NAME"])
        yield service, lambda: [*file.parent.glob(f"{file.name}*")], None
    else:
        durable, cluster = (request.getfixturevalue(name) for name in ("durable", "cluster"))
        yield durable, lambda: [cluster.folder], cluster


def dump(service, cluster, folder: Path) -> Path:
    file = folder / "dump"
    if cluster is not None:
        file.write_bytes(cluster.dump())
    else:
        done = service.manage("dumpdata", "--all")
        assert done.returncode == 0
        file.write_text(done.stdout)
    return file


def checkpoint() -> None:
    """Write everything in memory to the files of the database."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")


def test_card_numbers_are_stored_and_logged_nowhere(place, tmp_path, check_everything):
    service, files, cluster = place
    received = send_cards_everywhere(service)
    crash_with_a_card(service)
    time.sleep(LEASE)
    check_everything(service)
    sent = service.manage("send_outbox")
    assert sent.returncode == 0, sent.stderr
    assert list(service.mails.iterdir())
    answers = tmp_path / "answers"
    said = "\n".join(str(answer.body) for answer in received)
    answers.write_text(said.replace(DECLINE_MESSAGES[NOT_A_TEST_CARD], ""))
    with service.database.open():
        checkpoint()
    written = dump(service, cluster, tmp_path)

    places = [answers, written, service.log, service.mails, *files()]
    found = hits(places, tmp_path)
    texts = [answers, written, service.log, *service.mails.iterdir()]
    codes = [code for file in texts for code in codes_in(file.read_text())]

    assert found == []
    assert codes == []
    assert "[card 4242]" in service.log.read_text(), "no log line had a card to mask"
    assert not [answer for answer in received if answer.status >= 500]

    # The control: a stored number is found in the table, the dump and the journal.
    with service.database.open():
        Partner.objects.create(code=f"CODE {AMEX_CODE}", name=grouped("4242424242424242", "-"))
        checkpoint()
    written = dump(service, cluster, tmp_path)
    planted = hits([written, *files()], tmp_path)
    assert len(planted) >= (3 if cluster else 2)
    # It stands in its history as well.
    assert set(codes_in(written.read_text())) == {AMEX_CODE}
