"""Card numbers in text: their checksum, their brand, refusing and masking them."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from django.core.exceptions import ValidationError

# Digits that may belong to one card number, with little between them: people type spaces, dashes
# and dots, URLs have slashes and plus signs, JSON escapes line ends. Digits of any script count.
SEPARATOR = r"[\s._/+\u2010-\u2015-]|\\[nrt]"
DIGIT_RUN = re.compile(rf"\d+(?:(?:{SEPARATOR}){{1,3}}\d+)*")
ESCAPED_DIGIT_RUN = re.compile(rf"(?:%20)?\d+(?:(?:{SEPARATOR}|%20){{1,3}}\d+)*")
DIGIT_GROUP = re.compile(r"%20|\d+")
MIN_CARD_DIGITS, MAX_CARD_DIGITS = 12, 19

# What the Luhn algorithm adds for every second digit.
DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)

# The first match wins. The lengths are those that the networks issue, 12 to 19 digits.
BRAND_PATTERNS = (
    ("AmericanExpress", r"3[47]\d{13}"),
    ("Visa", r"4(\d{12}|\d{15}|\d{18})"),
    ("MasterCard", r"(5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"),
    ("Discover", r"(6011|64[4-9]\d|65\d{2})\d{12,15}"),
    ("DinersClub", r"3(0[0-5]|09|[689]\d)\d{11,16}"),
    ("JCB", r"35(2[89]|[3-8]\d)\d{12,15}"),
    ("UnionPay", r"(62|81)\d{14,17}"),
    ("Maestro", r"(5[06-8]|6[37])\d{10,17}"),
)


def find_brand(number: str) -> str | None:
    """The network that issued the number, None if it is unknown."""
    for brand, pattern in BRAND_PATTERNS:
        if re.fullmatch(pattern, number, re.ASCII):
            return brand
    return None


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the checksum of the others (ISO/IEC 7812-1)."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(DOUBLED[value] for value in values[1::2])) % 10 == 0


def has_digits_of_a_card(text: str) -> bool:
    """Whether a name has as many digits, of any script, as a card number."""
    return sum(character.isdigit() for character in text) >= MIN_CARD_DIGITS


def is_card_number(digits: str) -> bool:
    """Whether digits, of any script, are a card number of a known brand."""
    # The brands' patterns are of ASCII digits.
    return (
        passes_luhn(digits) and find_brand("".join(str(int(each)) for each in digits)) is not None
    )


def contains_card_of_a_brand(text: str, digit_run: re.Pattern[str] = DIGIT_RUN) -> bool:
    """Whether a card number of a known brand is in a run of digits and separators."""
    return any(
        is_card_number("".join(groups[first : last + 1]))
        for run in digit_run.findall(text)
        for groups in [re.findall(r"\d+", run)]
        for first, last in iter_valid_windows(groups)
    )


def refuse_card_number(text: str) -> None:
    """Validate a text that staff enter, and that may contain other long numbers (B18).

    Raises ValidationError, whose message does not repeat the text.
    """
    if contains_card_of_a_brand(text):
        raise ValidationError("This must not contain a card number.")


def mask_cards(text: str) -> str:
    """The text with every possible card number replaced by `[card 4242]`."""
    masked = DIGIT_RUN.sub(mask_digit_run, text)
    # In a second pass, because "%20" is either a space or a percent sign before two card digits.
    return ESCAPED_DIGIT_RUN.sub(mask_digit_run, masked) if "%20" in masked else masked


def mask_digit_run(match: re.Match[str]) -> str:
    """Mask the card numbers among groups of digits."""
    run = match.group()
    if len(run) < MIN_CARD_DIGITS:
        return run
    groups = [group for group in DIGIT_GROUP.finditer(run) if group.group() != "%20"]
    parts, done = [], 0
    for first, last in find_cards([group.group() for group in groups]):
        digits = "".join(group.group() for group in groups[first : last + 1])
        parts += [run[done : groups[first].start()], f"[card {digits[-4:]}]"]
        done = groups[last].end()
    return "".join([*parts, run[done:]])


def find_cards(groups: Sequence[str]) -> list[tuple[int, int]]:
    """The first and last group of each card number; overlapping ones are merged into one."""
    cards: list[tuple[int, int]] = []
    for first, last in iter_valid_windows(groups):
        if cards and first <= cards[-1][1]:
            cards[-1] = (cards[-1][0], max(last, cards[-1][1]))
        else:
            cards.append((first, last))
    return cards


def iter_valid_windows(groups: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first and last of adjacent groups that together pass the check of card numbers."""
    # Sums from the first digit on, with every second digit doubled: a client can send so many
    # groups that adding up each window again would take a fifth of a second.
    digits = [int(digit) for group in groups for digit in group]
    sums = [
        list(
            accumulate(
                (DOUBLED[digit] if (n + odd) % 2 else digit for n, digit in enumerate(digits)),
                initial=0,
            )
        )
        for odd in (0, 1)
    ]
    ends = list(accumulate(map(len, groups), initial=0))
    for first, last in iter_card_windows([len(group) for group in groups]):
        start, end = ends[first], ends[last + 1]
        # The last digit of a card number is not doubled.
        from_first = sums[(end - 1) % 2]
        if (from_first[end] - from_first[start]) % 10 == 0:
            yield first, last


def iter_card_windows(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of adjacent groups that together have as many digits as a card number.

    At most eight windows start at each group, however many groups there are.
    """
    for first in range(len(lengths)):
        digits = 0
        for last in range(first, len(lengths)):
            digits += lengths[last]
            if digits > MAX_CARD_DIGITS:
                break
            if digits >= MIN_CARD_DIGITS:
                yield first, last
