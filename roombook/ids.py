"""Ids of rows, as people type them and URLs contain them.

Ids are 32-bit integers in the contract and in the database. A larger number would be an error of
PostgreSQL, so it is rejected here like any other text that is no id.
"""

MAX_ID = 2**31 - 1


def parse_id(text: str | None) -> int | None:
    """The id that the text contains, None if it cannot be the id of a row."""
    if not text or len(text) > len(str(MAX_ID)) or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if int(text) <= MAX_ID else None


def is_id(text: str) -> bool:
    return parse_id(text) is not None
