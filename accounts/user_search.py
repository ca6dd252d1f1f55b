"""Finding accounts by what staff type of them, among a million."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from accounts.models import User, canonicalize_email

# Up to so many are looked up first; where more begin so, it is better to look for their rows.
MAX_LOOKED_UP_USERS = 1_000
ALL_USERS = Q()


def matching_prefix(
    words: str, *, by_address: bool = True, among: Q = ALL_USERS
) -> Iterable[int] | QuerySet[Any, Any]:
    """The accounts of that address, or whose address, names or company begin so: for `user__in`.

    Case does not matter; of two words the first is a first name and the other a last name, or the
    other way round. Each way goes through an index (see the migrations). `by_address`: whether who
    asks may know addresses and telephone numbers. `among`: those whom one looks for at all.
    """
    words = canonicalize_email(" ".join(words.split()))
    ways = (
        list(_get_prefix_conditions(words, by_address=by_address))
        if words and "\x00" not in words
        else []
    )
    rows = _with_lowercase_names().filter(among)
    found: set[int] = set()
    # One question each: of conditions joined by OR the database may read the whole table.
    for way in ways:
        ids = list(rows.filter(way).values_list("pk", flat=True)[:MAX_LOOKED_UP_USERS])
        if len(ids) == MAX_LOOKED_UP_USERS:
            return rows.filter(_combine_with_or(ways)).values("pk")
        found.update(ids)
        if ids and "@" in words:
            break  # the very address: nobody else is meant
    return sorted(found)


def _get_prefix_conditions(words: str, *, by_address: bool) -> Iterable[Q]:
    if "@" in words:
        if by_address:
            yield Q(email=words)
            yield Q(email__startswith=words)
        return
    first, _, last = words.partition(" ")
    yield Q(last_name_lower__startswith=words)
    yield Q(company_name_lower__startswith=words)
    if last:
        yield Q(first_name_lower=first, last_name_lower__startswith=last)
        yield Q(last_name_lower=first, first_name_lower__startswith=last)
    else:
        yield Q(first_name_lower__startswith=words)
        if by_address:
            yield Q(email__startswith=words)
    if by_address and not words[0].isalpha():
        yield Q(phone_number_lower__startswith=words)


def _combine_with_or(ways: Iterable[Q]) -> Q:
    every = Q()
    for way in ways:
        every |= way
    return every


def _with_lowercase_names() -> QuerySet[User]:
    return User.objects.alias(
        first_name_lower=Lower("first_name"),
        last_name_lower=Lower("last_name"),
        company_name_lower=Lower("company_name"),
        phone_number_lower=Lower("phone_number"),
    )
