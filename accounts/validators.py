"""Refuses card numbers in names, phone numbers and e-mail addresses (B7.5, B8.2). Pure.

The validators of the model's fields are the one rule for the API, the back office and commands.
Messages never echo the value, which may be a card number.
"""

import re
import unicodedata

from django.core.exceptions import ValidationError

from roombook.card_numbers import (
    MAX_PLAIN_PHONE_DIGITS,
    contains_card_of_a_brand,
    has_digits_of_a_card,
    is_card_number,
)

# ITU-T E.164. Without a country code and a zero, no country has more than eleven.
MAX_PHONE_DIGITS, MAX_NATIONAL_DIGITS, MAX_EXTENSION_DIGITS = 15, 11, 6
# What is dialed before a number from abroad, or from another city. No card number begins with 0.
PHONE_PREFIX = re.compile(r"^(?:011|00?)")
# A word, "x" or "#" after the number.
EXTENSION = re.compile(r"(?<=\d)[\W_]*(?:[^\W\d_]|#)")

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

    What is dialed before it (+, 00, 011, 0) and an extension do not count. More than 15 digits
    always are, and 13 to 15 (with a prefix: 14 and 15) with the check digit and the brand of one.
    """
    # The zero of "+49 (0)30" is dialed in its country only.
    text = unicodedata.normalize("NFKC", text).replace("(0)", "")
    number, *rest = EXTENSION.split(text, maxsplit=1)
    digits, extension = get_digits(number), get_digits("".join(rest))
    has_prefix = digits.startswith("0") or "+" in re.split(r"\d", number, maxsplit=1)[0]
    digits = PHONE_PREFIX.sub("", digits)
    if len(extension) > MAX_EXTENSION_DIGITS or not (
        has_prefix or len(digits) <= MAX_NATIONAL_DIGITS
    ):
        digits += extension
    shortest = MAX_PLAIN_PHONE_DIGITS + 1 if has_prefix else MAX_PLAIN_PHONE_DIGITS
    return len(digits) > MAX_PHONE_DIGITS or (len(digits) >= shortest and is_card_number(digits))


def get_digits(text: str) -> str:
    return "".join(str(int(each)) for each in text if each.isdecimal())


def email_contains_card_number(address: str) -> bool:
    """Whether the local part holds a card number of a known brand.

    Dots, dashes, plus signs and underscores between its digits are ignored.
    """
    return contains_card_of_a_brand(address.rpartition("@")[0])
