"""Formula injection: no cell of an exported table is run as a formula. Pure.

Exports escape such cells, and imports undo it, so that a table can be edited and uploaded again.
"""

import re

# What a spreadsheet takes for a formula, some also with full-width characters (= + - @). Leading
# apostrophes belong to it, so that unescaping is the exact inverse of escaping.
FORMULA_START = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")

# In a file that people open, a program may split a text at characters that separate cells or lines
# in other files, whether the cell has quotes or not, and may skip what comes before a formula.
SEPARATORS = r",;|\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
# Quotes, spaces, and characters that control or format.
SKIPPED = (
    r"'\"\uff02\uff07\x00-\x08\x0e-\x1b\x1f \x7f-\x84\x86-\xa0\xad\u034f\u061c\u1680\u180e"
    r"\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# All characters that are = + - @ if they are normalized, and the minus sign.
FORMULA = (
    r"=+\-@\uff1d\ufe66\u207c\u208c\u2a75\u2a76\uff0b\ufe62\u207a\u208a\ufb29"
    r"\uff0d\ufe63\u2212\u207b\u208b\uff20\ufe6b"
)
# Errors of a spreadsheet, also in other languages, and a cell that is too narrow.
ERROR = r"#(?:N/A|NV|[A-Z\xc0-\xde/0]+[!?]|##+)"
_APOSTROPHE = (
    rf"(?:\A|(?<=[{SEPARATORS}]))%s(?=[{SKIPPED}]*[{FORMULA}])|\A%s(?='*(?:[\t\r]|{ERROR}\Z))"
)
NO_APOSTROPHE, APOSTROPHE = (re.compile(_APOSTROPHE % (each, each)) for each in ("", "'"))


def escape_formula(text: str) -> str:
    """The text, with a leading apostrophe if a spreadsheet would run it. For programs (B2.5)."""
    return "'" + text if FORMULA_START.match(text) else text


def unescape_formula(cell: str) -> str:
    """The exact inverse of `escape_formula`. A cell without apostrophe, as `+1 555`, is kept."""
    return cell[1:] if cell.startswith("'") and FORMULA_START.match(cell) else cell


def escape_formulas(text: str) -> str:
    """The text with an apostrophe before each part that a spreadsheet would run or replace."""
    return NO_APOSTROPHE.sub("'", text)


def unescape_formulas(cell: str) -> str:
    """The exact inverse of `escape_formulas`."""
    return APOSTROPHE.sub("", cell)
