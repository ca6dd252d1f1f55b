"""Text that may end up in a spreadsheet: no cell is ever run as a formula. Pure."""

import re

# What a spreadsheet would run; with the apostrophes before it, so that taking one off is exact.
FORMULA_START = re.compile(r"'*[=+\-@\t\r]")


def escape_formula(text: str) -> str:
    """The text, with a `'` before it if a spreadsheet would run it."""
    return "'" + text if FORMULA_START.match(text) else text


def unescape_formula(cell: str) -> str:
    """The exact inverse of `guarded`; a raw `+1 555` stays what it is."""
    return cell[1:] if cell.startswith("'") and FORMULA_START.match(cell) else cell
