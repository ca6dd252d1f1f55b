"""The checksum of card numbers (ISO/IEC 7812-1)."""

DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the checksum that every card number ends with."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(DOUBLED[value] for value in values[1::2])) % 10 == 0
