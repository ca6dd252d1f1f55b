"""Text that people write: how it is stored, and when two names are the same one. Pure."""

import re
import unicodedata

OTHER_LINE_BREAK = re.compile("[\x0b\x0c\x85\u2028\u2029]")
# Control characters without tabs and line breaks, half surrogate pairs, and what Unicode calls
# noncharacters. Most file formats, XML among them, cannot hold them.
LAST_OF_PLANES = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
CONTROL = re.compile(
    rf"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{LAST_OF_PLANES}]"
)
# Soft hyphens, zero-width spaces, and marks of direction. Not the joiners, which are part of emoji
# and of words in Persian and Indic scripts.
INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
# All that a name can contain without being another one: Unicode's Default_Ignorable_Code_Point.
IGNORED = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
# What keyboards and word processors write for one another. The dot of a Turkish İ remains as a
# mark of its own when it is in lower case.
SAME_LETTERS = str.maketrans(
    {"ı": "i", "’": "'", "‘": "'", "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-"}  # noqa: RUF001
)


def remove_controls(text: str) -> str:
    return CONTROL.sub("", text)


def clean_text(text: str) -> str:
    """The text without outer spaces, and without control characters but tabs and line breaks."""
    return remove_controls(OTHER_LINE_BREAK.sub("\n", text)).strip()


def clean_line(text: str) -> str:
    """The text in one line, composed (NFC), with single spaces, without invisible characters."""
    visible = INVISIBLE.sub("", clean_text(text))
    return " ".join(unicodedata.normalize("NFC", visible).split())


def fold_name(text: str) -> str:
    """A name for comparison: however it is typed, in any case; accents matter.

    Places are compared without accents too: `places.fold_text`.
    """
    folded = unicodedata.normalize("NFKC", IGNORED.sub("", clean_text(text))).casefold()
    folded = unicodedata.normalize("NFKC", folded).replace("i\u0307", "i")
    return " ".join(folded.translate(SAME_LETTERS).split())
