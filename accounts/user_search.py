"""Finds accounts by the beginning of an e-mail address, a name, a company or a phone number."""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from accounts.models import User, canonicalize_email

# Up to this many accounts are loaded as ids; a query for rows of more is better left to the
# database as a subquery.
MAX_LOADED_IDS = 1_000
ALL_USERS = Q()


def matching_prefix(
    words: str, *, by_address: bool = True, among: Q = ALL_USERS
) -> Iterable[int] | QuerySet:
    """Return the matching accounts, for ``user__in``.

    Case does not matter. Two words are a first and a last name, in either order. Each condition
    uses an index. ``by_address``: also search e-mail addresses and phone numbers. ``among``: the
    accounts to search.
    """
    words = canonicalize_email(" ".join(words.split()))
    if not words or "\x00" in words:
        return []
    conditions = list(_get_conditions(words, by_address=by_address))
    rows = _annotate_lower_case().filter(among)
    found: set[int] = set()
    # One query each: the database may read the whole table for conditions that are joined by OR.
    for condition in conditions:
        ids = list(rows.filter(condition).values_list("pk", flat=True)[:MAX_LOADED_IDS])
        if len(ids) == MAX_LOADED_IDS:
            return rows.filter(reduce(or_, conditions)).values("pk")
        found.update(ids)
        if ids and "@" in words:
            break  # the complete address
    return sorted(found)


def _get_conditions(words: str, *, by_address: bool) -> Iterator[Q]:
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


def _annotate_lower_case() -> QuerySet[User]:
    columns = ("first_name", "last_name", "company_name", "phone_number")
    return User.objects.alias(**{f"{name}_lower": Lower(name) for name in columns})
