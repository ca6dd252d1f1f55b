"""Detects card numbers among names and phone numbers. Pure."""

from roombook.card_numbers import passes_luhn

# The shortest card numbers have twelve digits; no name has.
MIN_CARD_DIGITS = 12
# ITU-T E.164.
MAX_PHONE_DIGITS = 15


def contains_card_number(text: str) -> bool:
    """Whether a name has as many digits, of any script, as a card number."""
    return sum(character.isdigit() for character in text) >= MIN_CARD_DIGITS


def phone_contains_card_number(text: str) -> bool:
    """Whether a phone number may be a card number.

    More than 15 digits always are. Fewer are suspicious only if the number is not in international
    format and its last digit is a valid card checksum.
    """
    digits = "".join(str(int(each)) for each in text if each.isdecimal())
    if len(digits) > MAX_PHONE_DIGITS:
        return True
    return len(digits) > MIN_CARD_DIGITS and not text.startswith("+") and passes_luhn(digits)
