"""Card numbers in requests that gunicorn cannot read: they never reach the code of the service.

tests/test_card_canary.py has all requests that do.
"""

import socket

import pytest

from tests.faults.world import CARD

NUMBER = CARD["CreditCardNumber"]
GROUPED = "-".join(NUMBER[n : n + 4] for n in range(0, 16, 4))


@pytest.mark.parametrize("number", [NUMBER, GROUPED])
def test_card_in_an_unreadable_request_is_masked_in_the_log(guarded, number):
    before = guarded.log.stat().st_size
    for text in (
        f'"CreditCardNumber": "{number}"}}',
        f"GET /?card={number} HTTP/9.9",
        f"GET / HTTP/1.1\r\nX Card: {number}",
    ):
        with socket.create_connection(("127.0.0.1", guarded.port)) as connected:
            connected.sendall(f"{text}\r\n\r\n".encode())
            assert connected.recv(1000).startswith(b"HTTP/1.1 400 ")

    logged = guarded.log.read_text()[before:]
    assert number not in logged
    assert "[card 4242]" in logged
