"""Finding accounts by what staff type of them."""

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from accounts.models import User, canonical_email

# Of more than this nobody reads the list: they type another letter.
MOST = 100
EVERYBODY = Q()


def beginning_with(words: str, *, by_address: bool = True, among: Q = EVERYBODY) -> list[int]:
    """The ids of accounts of that address, or whose address, names or company begin so.

    Case does not matter; of two words the first is a first name and the other a last name, or the
    other way round. At most MOST of those `among` whom one looks, by index (see the migrations).
    """
    words = canonical_email(" ".join(words.split()))
    if not words:
        return []
    if "@" in words:
        rows = User.objects.filter(among)
        exact = rows.filter(email=words).values_list("pk", flat=True)
        begins = rows.filter(email__startswith=words).values_list("pk", flat=True)
        return (list(exact) or list(begins[:MOST])) if by_address else []
    first, _, last = words.partition(" ")
    ways: list[Q] = [
        Q(last_name_lower__startswith=words),
        Q(company_name_lower__startswith=words),
    ]
    if last:
        ways += [
            Q(first_name_lower=first, last_name_lower__startswith=last),
            Q(last_name_lower=first, first_name_lower__startswith=last),
        ]
    else:
        ways.append(Q(first_name_lower__startswith=words))
        if by_address:
            ways.append(Q(email__startswith=words))
    if by_address and not words[0].isalpha():
        ways.append(Q(phone_number_lower__startswith=words))
    found: dict[int, None] = {}
    # One question each: of conditions joined by OR the database may read the whole table.
    for way in ways:
        ids = _with_lower_names().filter(among, way).values_list("pk", flat=True)[:MOST]
        found |= dict.fromkeys(ids)
    return list(found)[:MOST]


def _with_lower_names() -> QuerySet[User]:
    return User.objects.alias(
        first_name_lower=Lower("first_name"),
        last_name_lower=Lower("last_name"),
        company_name_lower=Lower("company_name"),
        phone_number_lower=Lower("phone_number"),
    )
