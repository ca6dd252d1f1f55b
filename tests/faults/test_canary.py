"""Card numbers and security codes are in no log and no row of workers that crash with them.

tests/test_card_canary.py pays with all kinds of cards, and sends numbers in all other fields.
"""

import re
import socket
import time

from reservations.models import Partner
from tests.faults.client import BROKEN_CONNECTION
from tests.faults.size import LEASE
from tests.faults.world import CARD, SECURITY_CODE, World

NUMBER = CARD["CreditCardNumber"]
NOTATIONS = [NUMBER, *(by.join(NUMBER[n : n + 4] for n in range(0, 16, 4)) for by in " -")]


def send_unreadable_requests(port):
    """Send a card where the server expects the first line or a header of a request."""
    for number in NOTATIONS:
        for text in (
            f'"CreditCardNumber": "{number}"}}',
            f"GET /?card={number.replace(' ', '+')} HTTP/9.9",
            f"GET / HTTP/1.1\r\nX Card: {number}",
        ):
            with socket.create_connection(("127.0.0.1", port)) as connected:
                connected.sendall(f"{text}\r\n\r\n".encode())
                assert connected.recv(1000).startswith(b"HTTP/1.1 400 ")


def crash_with_a_card(service):
    """Crash a worker, and let a library put the number into its exception."""
    with service.database.open():
        world = World(service)
        customer = world.customer()
        first, second, third = (world.draft(customer, world.room()).pk for _ in range(3))
    service.crash("in authorize")
    assert customer.client.checkout(first, CARD).status == BROKEN_CONNECTION
    service.explode("after authorize")
    answer = customer.client.checkout(second, CARD)
    assert (answer.status, answer.code) == (500, "InternalError")
    assert customer.client.checkout(third, CARD).code == "Confirmed"


def find_leaks(service):
    """The numbers and security codes in the rows, the log and the e-mails of the service."""
    sent = service.manage("send_outbox")
    assert sent.returncode == 0, sent.stderr
    assert list(service.mails.iterdir())
    dumped = service.manage("dumpdata", "--all")
    assert dumped.returncode == 0
    files = [service.log, *service.mails.iterdir()]
    text = "\n".join([dumped.stdout, *(each.read_text() for each in files)])
    # Nothing else looks like the code because of its leading zero.
    codes = re.findall(rf"(?<![\w.:+-]){SECURITY_CODE}(?!\w)", text)
    return {each for each in NOTATIONS if each in text} | set(codes)


def test_card_of_crashed_workers_is_stored_and_logged_nowhere(
    short_lease_service, check_everything
):
    service = short_lease_service
    send_unreadable_requests(service.port)
    crash_with_a_card(service)
    time.sleep(LEASE)
    check_everything(service)

    assert find_leaks(service) == set()
    assert "[card 4242]" in service.log.read_text(), "no log line had a card to mask"

    # The control.
    with service.database.open():
        Partner.objects.create(code=f"CODE {SECURITY_CODE}", name=NOTATIONS[1])
    assert find_leaks(service) == {SECURITY_CODE, NOTATIONS[1]}
