"""What a cell of a workbook means: what the sheet displays, not what is stored.

Spreadsheet programs store 8 % as 0.08 and 02116 as 2116, and make a day of a room called 1-3. The
number format of a cell tells what is displayed. A cell is refused if that is not certain, such as
a decimal separator or a date in a text, or if the format hides a part of the value.
"""

import datetime as dt
import re
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from string import ascii_uppercase

from babel.numbers import get_currency_symbol
from django.conf import settings

# Programs display so many digits of an integer: without a number format, and with one.
MAX_DIGITS_OF_GENERAL, MAX_DIGITS = 11, 15
# A piece of a number format: literal text, padding, a currency, a color, a placeholder. Conditions
# count as placeholders, which match no pattern.
PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?i:black|blue|cyan|green|magenta|red|white|yellow|color ?\d+)\]"
    r"|(?P<place>\[[^\]]*\]|(?i:general)|E[+-]|[0#?.,/%@])|(?P<other>.)",
    re.DOTALL,
)
NUMBER = re.compile(r"[0#?,]*[0#?](?:\.(?P<decimals>[0#?]*))?(?P<exponent>E[+-]0+)?")
SIGNS = "-\u2212("


class CellKind(Enum):
    """What a column holds, and how to repair a cell for which that is not certain."""

    TEXT = "format the column as text and type the value again"
    NUMBER = "format it as a plain number that shows all digits, without a unit"
    PERCENT = "write the percentage with all its digits, such as 8 or 8%"
    BOOLEAN = "write true or false"
    TIME = "format the column as text and write 2027-03-01, or 2027-03-01T09:00"


def read_value(value: object, number_format: str, kind: CellKind) -> str:
    """A value that is not text, as CSV would have it. Raises ValueError with what to do."""
    text = None
    if isinstance(value, bool):
        text = str(value).lower() if kind is CellKind.BOOLEAN else None
    elif isinstance(value, int | float) and kind is not CellKind.TIME:
        text = _read_number(value, number_format, kind)
    elif isinstance(value, dt.date) and kind is CellKind.TIME:
        text = _read_time(value, number_format)
    if text is None:
        seen = f'{value} in the format "{number_format[:50]}"'
        raise ValueError(f"The workbook has {seen} here: {kind.value}.")
    return text


@lru_cache(maxsize=512)
def _parse_format(number_format: str) -> list[list[tuple[str, bool]]]:
    """The pieces for positive numbers, negative ones and zero; whether each is a placeholder."""
    sections: list[list[tuple[str, bool]]] = [[]]
    for match in PIECE.finditer(number_format):
        if match["other"] == ";":
            sections.append([])
        else:
            literal = match["quoted"] or match["escaped"] or match["currency"] or match["other"]
            sections[-1].append((match["place"] or literal or " ", match["place"] is not None))
    return sections


def _read_number(value: float, number_format: str, kind: CellKind) -> str | None:
    """The number, or for a column of text its text; None if that is not certain."""
    section, *others = _parse_format(number_format)
    if value < 0:
        section = others[0] if others else [("-", False), *section]
    elif value == 0 and len(others) > 1:
        section = others[1]
    places = "".join(text for text, is_place in section if is_place)
    literals = "".join(text for text, is_place in section if not is_place)
    is_percent, is_general = "%" in places, places.lower() in ("general", "@")
    places = "0" if is_general else places.replace("%", "", 1)
    number = Decimal(f"{value:.15g}").scaleb(2 if is_percent else 0)
    match = NUMBER.fullmatch(places)
    # Without a sign, a color may tell that a number is negative.
    if match is None or not number.is_finite() or (value < 0 and not set(literals) & set(SIGNS)):
        return None
    if kind is CellKind.TEXT:
        max_digits = MAX_DIGITS_OF_GENERAL if is_general else MAX_DIGITS
        return _display_integer(number, section, places, max_digits)
    if is_percent and kind is not CellKind.PERCENT:
        return None
    unit = re.sub(rf"[{SIGNS}+)\s]", "", literals)
    if unit and (is_percent or unit not in _get_units(kind)):
        return None
    decimals, letter = len(match["decimals"] or ""), "E" if match["exponent"] else "f"
    is_rounded = not is_general and Decimal(f"{number:.{decimals}{letter}}") != number
    if is_rounded:
        return None
    return format_number(str(number))


def _get_units(kind: CellKind) -> set[str]:
    """The literal texts next to a number; a % as placeholder is none, because it multiplies."""
    symbol = get_currency_symbol(settings.CURRENCY, locale=settings.LOCALE)
    currency = {settings.CURRENCY, symbol, symbol.lstrip(ascii_uppercase)}
    return {"%"} if kind is CellKind.PERCENT else currency


def _display_integer(
    number: Decimal, section: list[tuple[str, bool]], places: str, max_digits: int
) -> str | None:
    digits = str(abs(int(number))) if number else ""
    if number != int(number) or len(digits) > max_digits or not re.fullmatch("[0#]+", places):
        return None
    # Zeros fill the places from the first 0 on. The first place takes the digits that are left.
    digits = digits.zfill(len(places.lstrip("#"))).rjust(len(places), "\0")
    first = len(digits) - len(places) + 1
    parts = iter([digits[:first], *digits[first:]])
    texts = [next(parts) if is_place and text != "%" else text for text, is_place in section]
    return "".join(texts).replace("\0", "").strip() or None


def _read_time(value: dt.date, number_format: str) -> str | None:
    text, letters = value.isoformat(), "ymd"
    if isinstance(value, dt.datetime):
        # Spreadsheets count days in floating point.
        value = (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
        text = value.isoformat(timespec="seconds" if value.second else "minutes")
        letters += "h" * (value.time() != dt.time.min) + "s" * (value.second > 0)
    # A day without its year was perhaps no day, and nobody sees a time that is not displayed.
    displayed = PIECE.sub(lambda piece: piece["other"] or "", number_format).lower()
    return text if set(letters) <= set(displayed) else None


def format_number(number: str) -> str:
    """Return the number as text without an exponent and without trailing zeros."""
    text = format(Decimal(number), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
