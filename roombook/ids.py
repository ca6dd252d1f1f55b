"""Numbers of rows, as people and addresses write them."""

HIGHEST_ID = 2**31 - 1


def number(text: str | None) -> int | None:
    """The number that a text says, if a row can have it."""
    if not text or len(text) > len(str(HIGHEST_ID)) or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if int(text) <= HIGHEST_ID else None


def is_id(text: str) -> bool:
    return number(text) is not None
