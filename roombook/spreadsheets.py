"""Formula injection: no cell of an exported table is run as a formula. Pure.

Exports escape such cells, and imports undo it, so that a table can be edited and uploaded again.
"""

import re

# What a spreadsheet takes for a formula, some also with full-width characters (= + - @). Leading
# apostrophes belong to it, so that unescaping is the exact inverse of escaping.
FORMULA_START = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def escape_formula(text: str) -> str:
    """The text, with a leading apostrophe if a spreadsheet would run it."""
    return "'" + text if FORMULA_START.match(text) else text


def unescape_formula(cell: str) -> str:
    """The exact inverse of `escape_formula`. A cell without apostrophe, as `+1 555`, is kept."""
    return cell[1:] if cell.startswith("'") and FORMULA_START.match(cell) else cell
