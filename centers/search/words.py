"""The words of a search, whether they were typed, or pasted from an address (B9.3)."""

import re
import string
import unicodedata
from collections.abc import Sequence

from roombook import places

MAX_WORDS = 30
# E-mails show the address of a center after this label.
LABEL = re.compile(r"\W*where\s*[:\t\n]", re.IGNORECASE)
# New England and New South Wales are elsewhere.
PART_OF_UNITED_KINGDOM = re.compile(
    r"(?<! new)(?<! new south) (england|scotland|wales|northern ireland)(?= )"
)


def split_words(query: str) -> list[str]:
    """The normalized words of a query: what is between spaces and punctuation, each once.

    Splitting further than necessary is harmless, because a word may be a part of a center's word.
    """
    if not query:
        return []
    text = places.join_numbers(_fold(query))
    if not text.replace(" ", "").isalnum():
        spaced = "".join(each if _is_in_word(each) else " " for each in text)
        # Without any word, a query of punctuation would find all centers.
        text = spaced if spaced.strip() else text
    return list(dict.fromkeys(map(places.shorten_zip_code, text.split())))


def _fold(query: str) -> str:
    return places.fold_text(LABEL.sub("", query, count=1).replace(",", " "))


def _is_in_word(letter: str) -> bool:
    # Not isalnum() alone: the vowels of Hindi and Thai are marks.
    return unicodedata.category(letter)[0] in "LMNC"


def list_names(query: str, words: Sequence[str]) -> set[str]:
    """All phrases of a query that may be a city, a name or a postal code, as they are stored.

    "new york loft" may name the city New York, and "st. louis." the city with this punctuation.
    """
    phrases = {
        " ".join(each[start:end])
        for each in {tuple(words), tuple(_fold(query).split())}
        for start in range(len(each))
        for end in range(start + 1, len(each) + 1)
    }
    codes = (places.list_postal_codes(word) for word in words if any(map(str.isdigit, word)))
    return phrases.union((each.strip(string.punctuation) for each in phrases), *codes)


def replace_part_of_country(words: Sequence[str]) -> list[str]:
    """The words with the United Kingdom instead of a part of it; empty if nothing else is named.

    Addresses there name no country but the whole one, and people write "London, England".
    """
    text = f" {' '.join(words)} "
    rest = PART_OF_UNITED_KINGDOM.sub("", text)
    return [*rest.split(), "united kingdom"] if rest.strip() and rest != text else []
