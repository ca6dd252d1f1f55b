"""Paths that end in a secret, which no log and no trace shows.

An invitation sets a password, a calendar feed shows an account's meetings, a payment link a bill, a
receipt file what was paid, and a page of the sandbox saves a card or confirms a payment. Stripe
adds the client secret of a payment to the query of the page to which it leads back.
"""

import re

from roombook.card_numbers import mask_cards

SECRET_PATHS = (
    *("/calendar/", "/invitation/", "/pay/", "/receipt-file/"),
    *("/sandbox/setups/", "/sandbox/payments/", "/payments/return"),
)
_BEGIN = f"({'|'.join(SECRET_PATHS)})"
_REST_OF_PATH = re.compile(f"{_BEGIN}.+", re.DOTALL | re.IGNORECASE)
# Without backslashes, which escape the end of a text in JSON.
_REST_OF_WORD = re.compile(rf"{_BEGIN}[^\s\"'<>\\]+", re.IGNORECASE)


def mask_path(path: str) -> str:
    """Mask the secret of a path, complete or not."""
    return _REST_OF_PATH.sub(r"\1...", path)


def mask_line(line: str) -> str:
    """Mask the secrets of all paths in a line of the log, and card numbers."""
    return mask_cards(_REST_OF_WORD.sub(r"\1...", line))
