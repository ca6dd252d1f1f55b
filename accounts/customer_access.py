"""The customers that a member of staff may view and find (B18).

Staff with a role at some centers see the customers who have, or had, a reservation there. To book
for somebody else, they must enter that person's complete e-mail address.
"""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from accounts import roles, user_search
from accounts.models import User, canonicalize_email


def get_customer_filter(
    staff: User | AnonymousUser | None,
    path: str = "pk",
    *,
    permission: str = roles.VIEW_USER,
) -> Q:
    """Return a filter for accounts that the user may view; ``path`` leads from a row to an account.

    With another permission, it selects the customers of the centers with that permission.
    """
    centers = roles.get_permitted_centers(staff, permission)
    if centers is None:
        return Q()
    # The relation leads to the model, because this app must not import reservations.
    reservations = User._meta.get_field("reservations").related_model
    rows = reservations._default_manager.filter(room__center__in=sorted(centers))
    return Q(**{f"{path}__in": rows.values("user")})


def can_view_customer(staff: User | AnonymousUser, customer: User) -> bool:
    return User.objects.filter(get_customer_filter(staff), pk=customer.pk).exists()


def find_bookable_customers(staff: User, words: str) -> QuerySet[User]:
    """Return the accounts that the user may book for.

    ``words`` are matched as a prefix among the user's own customers; a complete e-mail address
    finds anybody.
    """
    found = Q(pk__in=user_search.matching_prefix(words, among=get_customer_filter(staff)))
    # PostgreSQL accepts no NUL, and no address contains one.
    if "@" in words and "\x00" not in words and roles.has_permission(staff, roles.ADD_RESERVATION):
        found |= Q(email=canonicalize_email(words))
    return User.objects.filter(found, is_active=True).order_by("email")


def search_customers(
    rows: QuerySet[User], words: str, *, staff: User | AnonymousUser
) -> QuerySet[User]:
    """Return the customers that match the words and that the user may view."""
    matching = user_search.matching_prefix(words, among=get_customer_filter(staff))
    return rows.filter(pk__in=matching)
