"""Which customers a member of staff may know (B18).

Where a role is at some centers only, its customers are those who have, or had, a reservation
there. To book for somebody who comes for the first time it takes their whole e-mail address.
"""

from typing import Any

from django.db.models import Q, QuerySet

from accounts import roles, user_search
from accounts.models import User, canonicalize_email

VIEW, ADD = "accounts.view_user", "accounts.add_user"
BOOK = "reservations.add_reservation"


def get_customer_filter(staff: Any, path: str = "pk", *, permission: str = VIEW) -> Q:
    """The accounts that staff may look at; `path` leads from a row to an account.

    With another permission: those of the customers of the centers where they have that one.
    """
    centers = roles.get_permitted_centers(staff, permission)
    if centers is None:
        return Q()
    # Through the relation, since accounts do not import what is built upon them.
    reservations = User._meta.get_field("reservations").related_model
    theirs = reservations._default_manager.filter(room__center__in=sorted(centers))
    return Q(**{f"{path}__in": theirs.values("user")})


def can_view_customer(staff: Any, customer: User) -> bool:
    return User.objects.filter(get_customer_filter(staff), pk=customer.pk).exists()


def find_bookable_customers(staff: Any, words: str) -> QuerySet[User]:
    """Whom staff may choose to book for: their customers as they type, anyone by the address."""
    found = Q(pk__in=user_search.matching_prefix(words, among=get_customer_filter(staff)))
    # PostgreSQL takes no NUL, and no address has one.
    if "@" in words and "\x00" not in words and roles.has_permission(staff, BOOK):
        found |= Q(email=canonicalize_email(words))
    return User.objects.filter(found, is_active=True).order_by("email")


def search_customers(rows: QuerySet[User], words: str, *, staff: Any) -> QuerySet[User]:
    """Those of the rows that the words lead to, among those whom staff may know at all."""
    return rows.filter(pk__in=user_search.matching_prefix(words, among=get_customer_filter(staff)))
