"""Numbers of rows, as people and addresses write them."""

MAX_ID = 2**31 - 1


def parse_id(text: str | None) -> int | None:
    """The number that a text says, if a row can have it."""
    if not text or len(text) > len(str(MAX_ID)) or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if int(text) <= MAX_ID else None


def is_id(text: str) -> bool:
    return parse_id(text) is not None
