"""What a name may be. Pure."""

from roombook.card_numbers import passes_luhn

# The shortest card numbers have twelve digits; no name has.
MIN_CARD_DIGITS = 12
# By the International Telecommunication Union (E.164).
MAX_PHONE_DIGITS = 15


def contains_card_number(text: str) -> bool:
    """Whether a text has so many digits, of any script, that it may hold a card number."""
    return sum(character.isdigit() for character in text) >= MIN_CARD_DIGITS


def phone_contains_card_number(text: str) -> bool:
    """Whether a telephone number may be a card number: no telephone has sixteen digits, and one
    with fewer is suspicious only if it is not written the international way and its last digit is
    a card's checksum."""
    digits = "".join(str(int(each)) for each in text if each.isdecimal())
    if len(digits) > MAX_PHONE_DIGITS:
        return True
    return len(digits) > MIN_CARD_DIGITS and not text.startswith("+") and passes_luhn(digits)
