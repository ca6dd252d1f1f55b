"""What a name may be. Pure."""

# The shortest card numbers have twelve digits; no name has.
CARD_DIGITS = 12


def holds_card_number(text: str) -> bool:
    """Whether a text has so many digits, of any script, that it may hold a card number."""
    return sum(character.isdigit() for character in text) >= CARD_DIGITS
