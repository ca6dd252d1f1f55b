"""Card numbers in text: their checksum, their brand, refusing and masking them."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

from django.core.exceptions import ValidationError

# What may stand between the digits of one card number, however much of it: everything that by its
# Unicode category is neither a letter nor a number (spaces, punctuation, symbols, invisible
# characters), and such a character as JSON and Python escape it. Digits of any script count.
SEPARATOR = r"\\(?:[bfnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})|[\W_]"
# As URLs escape it: ASCII without digits and letters, and the bytes of all other characters.
PERCENT_ESCAPE = r"%(?:[0189a-fA-F][0-9a-fA-F]|2[0-9a-fA-F]|3[a-fA-F]|40|5[b-fB-F]|60|7[b-fB-F])"
# What is no part of a card number, although it has digits: most lines of the log begin with a time.
TIME = r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[ T][0-2]\d(?::[0-5]\d){1,2}(?:[.,]\d{1,6})?)?(?!\d)"
MASKED = r"\[card \d{4}\]"
DIGIT_RUN = re.compile(rf"{MASKED}|{TIME}|\d+(?:(?:{SEPARATOR})+(?!{TIME})\d+)*")
ESCAPED_DIGIT_RUN = re.compile(
    rf"{MASKED}|{TIME}|(?:{PERCENT_ESCAPE})?\d+(?:(?:{PERCENT_ESCAPE}|{SEPARATOR})+(?!{TIME})\d+)*"
)
NO_CARD = re.compile(rf"{MASKED}|{TIME}")
DIGIT_GROUP = re.compile(rf"(?:{SEPARATOR})+|\d+")
ESCAPED_DIGIT_GROUP = re.compile(rf"(?:{PERCENT_ESCAPE}|{SEPARATOR})+|\d+")
MIN_CARD_DIGITS, MAX_CARD_DIGITS = 12, 19
MIN_GROUP_DIGITS = 4
# An international telephone number of at most this many digits is never a card number.
MAX_PLAIN_PHONE_DIGITS = 13

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


def contains_card_of_a_brand(text: str) -> bool:
    """Whether a card number of a known brand is among the digits of a text.

    Telephone numbers, amounts and times are not refused because together they have the digits of
    one: see `is_grouped_like_a_card`.
    """
    return any(
        is_card_number("".join(numbers[first : last + 1]))
        and is_grouped_like_a_card(text, groups[first : last + 1])
        for run in DIGIT_RUN.finditer(text)
        for groups in [find_digit_groups(run, DIGIT_GROUP)]
        for numbers in [[group.group() for group in groups]]
        for first, last in iter_valid_windows(numbers)
    )


def is_grouped_like_a_card(text: str, groups: Sequence[re.Match[str]]) -> bool:
    """Whether groups of digits can be one card number, by their lengths and what is between them.

    Groups of four digits or more can, whatever separates them. Shorter ones can if all are equally
    long and have the same between them, spaces or signs: those of "18:30, 20:45" are not.
    """
    lengths = [len(group.group()) for group in groups]
    start = groups[0].start()
    if text[max(0, start - 1) : start] == "+" and sum(lengths) <= MAX_PLAIN_PHONE_DIGITS:
        return False
    if min(lengths[:-1], default=MIN_GROUP_DIGITS) >= MIN_GROUP_DIGITS:
        return True
    between = {text[one.end() : other.start()] for one, other in pairwise(groups)}
    is_even = len({*lengths[:-1]}) == 1 and lengths[-1] <= lengths[0] and len(between) == 1
    return is_even and len({each.isspace() for each in between.pop()}) == 1


def refuse_card_number(text: str) -> None:
    """Validate a text that staff enter, and that may contain other long numbers (B18).

    Raises ValidationError, whose message does not repeat the text.
    """
    if contains_card_of_a_brand(text):
        raise ValidationError("This must not contain a card number.")


def mask_cards(text: str) -> str:
    """The text with every possible card number replaced by `[card 4242]`."""
    if "%" in text:
        text = ESCAPED_DIGIT_RUN.sub(partial(mask_digit_run, ESCAPED_DIGIT_GROUP), text)
    # In another pass, because "%20" is either a space or a percent sign before two card digits.
    return DIGIT_RUN.sub(partial(mask_digit_run, DIGIT_GROUP), text)


def mask_digit_run(digit_group: re.Pattern[str], run: re.Match[str]) -> str:
    """Mask the card numbers among groups of digits."""
    groups = find_digit_groups(run, digit_group)
    parts, done = [], run.start()
    for first, last in find_cards([group.group() for group in groups]):
        digits = "".join(group.group() for group in groups[first : last + 1])
        parts += [run.string[done : groups[first].start()], f"[card {digits[-4:]}]"]
        done = groups[last].end()
    return "".join([*parts, run.string[done : run.end()]])


def find_digit_groups(run: re.Match[str], digit_group: re.Pattern[str]) -> list[re.Match[str]]:
    if len(run.group()) < MIN_CARD_DIGITS or NO_CARD.fullmatch(run.group()):
        return []
    groups = digit_group.finditer(run.string, run.start(), run.end())
    return [group for group in groups if group.group().isdecimal()]


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
