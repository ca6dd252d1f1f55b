"""Refuses card numbers in names, phone numbers and e-mail addresses (B7.5, B8.2). Pure.

The validators of the model's fields are the one rule for the API, the back office and commands.
Messages never echo the value, which may be a card number.
"""

import re
import unicodedata

from django.core.exceptions import ValidationError

from roombook.card_numbers import (
    MIN_CARD_DIGITS,
    contains_card_of_a_brand,
    has_digits_of_a_card,
    is_card_number,
    passes_luhn,
)

# ITU-T E.164.
MAX_PHONE_DIGITS = 15
# An international phone number of at most this many digits is never a card number.
MAX_PLAIN_PHONE_DIGITS = 13

DIGITS_IN_EMAIL = re.compile(r"\d+(?:[._+-]+\d+)*")

CARD_NUMBER_IN_NAME = "This looks like a card number, not a name."
CARD_NUMBER_IN_PHONE_NUMBER = "This looks like a card number, not a telephone."
CARD_NUMBER_IN_EMAIL = "This looks like a card number, not an e-mail address."


def validate_name(text: str) -> None:
    if has_digits_of_a_card(text):
        raise ValidationError(CARD_NUMBER_IN_NAME, code="card_number")


def validate_phone_number(text: str) -> None:
    if phone_contains_card_number(text):
        raise ValidationError(CARD_NUMBER_IN_PHONE_NUMBER, code="card_number")


def validate_email_without_card(address: str) -> None:
    if email_contains_card_number(address):
        raise ValidationError(CARD_NUMBER_IN_EMAIL, code="card_number")


def phone_contains_card_number(text: str) -> bool:
    """Whether a phone number may be a card number.

    More than 15 digits always are. In international format, 14 and 15 digits are if they pass the
    check digit and have a brand; otherwise, 13 to 15 digits are if they pass the check digit.
    """
    digits = "".join(str(unicodedata.digit(each)) for each in text if each.isdigit())
    if len(digits) > MAX_PHONE_DIGITS:
        return True
    if text.lstrip().startswith("+"):
        return len(digits) > MAX_PLAIN_PHONE_DIGITS and is_card_number(digits)
    return len(digits) > MIN_CARD_DIGITS and passes_luhn(digits)


def email_contains_card_number(address: str) -> bool:
    """Whether the local part holds a card number of a known brand.

    Dots, dashes, plus signs and underscores between its digits are ignored.
    """
    return contains_card_of_a_brand(address.rpartition("@")[0], DIGITS_IN_EMAIL)
