"""Finds accounts by words of a name or company, a part of an e-mail address, or digits of a phone
number.

All are in one indexed column (`accounts.models.search_text`).
"""

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import StrIndex, Substr

from accounts.models import User
from accounts.models.search_text import END_OF_NAMES
from accounts.validators import get_digits
from roombook.places import fold_text

# Up to this many accounts are loaded as ids. The condition for more is better left to the database,
# which soon finds enough rows for a page.
MAX_LOADED_IDS = 1_000
MAX_WORDS = 8
# Shorter words are not in an index of trigrams, so they are searched with the space before them.
MIN_INFIX_LENGTH = 3
PHONE_CHARACTERS = set("0123456789+-()./ ")


def filter_users(rows: QuerySet[User], words: str) -> QuerySet[User]:
    """Return the accounts that match the words, of those in ``rows``."""
    found = find_users(words)
    return rows.filter(pk__in=found) if isinstance(found, list) else _match(rows, words)


def find_users(words: str, *, by_address: bool = True) -> list[int] | QuerySet:
    """Return the accounts that contain every word, for ``user__in``.

    Case and accents do not matter. Words of one or two letters are beginnings of words. A phone
    number is found by consecutive digits, however they are written. ``by_address``: also search
    e-mail addresses and phone numbers.
    """
    return load_ids(_match(User.objects.all(), words, by_address=by_address))


def load_ids(users: QuerySet[User]) -> list[int] | QuerySet:
    """Return the ids of the accounts, or the query of them if there are many."""
    ids = users.values_list("pk", flat=True)
    loaded = list(ids[: MAX_LOADED_IDS + 1])
    return loaded if len(loaded) <= MAX_LOADED_IDS else ids


def _match(rows: QuerySet[User], words: str, *, by_address: bool = True) -> QuerySet[User]:
    folded = fold_text(words)
    if not folded or "\x00" in words:
        return rows.none()
    names = Substr("search_text", 1, StrIndex("search_text", Value(END_OF_NAMES)))
    return rows.alias(names=names).filter(_get_condition(folded, by_address=by_address))


def _get_condition(folded: str, *, by_address: bool) -> Q:
    words = folded.split()[:MAX_WORDS]
    infixes = [word if len(word) >= MIN_INFIX_LENGTH else f" {word}" for word in words]
    in_text = Q(*(Q(search_text__contains=infix) for infix in infixes))
    # The index is of the whole text.
    in_names = in_text & Q(*(Q(names__contains=infix) for infix in infixes))
    if not by_address:
        return in_names
    digits = get_digits(folded)
    is_phone_number = len(digits) >= MIN_INFIX_LENGTH and set(folded) <= PHONE_CHARACTERS
    return Q(search_text__contains=digits) | in_names if is_phone_number else in_text
