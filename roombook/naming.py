"""Converts between the contract's names (`HasCVV`) and Python names (`has_cvv`)."""

import re
from functools import lru_cache

WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
ACRONYMS = {"cvv": "CVV"}


@lru_cache(maxsize=1024)
def to_snake_case(name: str) -> str:
    """`Last4DigitsOfCreditCardNumber` becomes `last4_digits_of_credit_card_number`."""
    return WORD_BOUNDARY.sub("_", name).lower()


def to_contract_name(attribute: str) -> str:
    """`has_cvv` becomes `HasCVV`; an index of a list stays as it is."""
    return "".join(
        ACRONYMS.get(word) or word[:1].upper() + word[1:] for word in attribute.split("_")
    )


def to_contract_path(path: str) -> str:
    """`service_options.2.quantity` becomes `ServiceOptions.2.Quantity`."""
    return ".".join(to_contract_name(part) for part in path.split("."))
