"""The customers that a member of staff may view and find (B18).

Staff with a role at some centers see the customers who have, or had, a booked reservation there; a
draft is not enough, because anybody could create one. To book for somebody else, they must enter
that person's complete e-mail address. Only administrators find the accounts of staff.
"""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from accounts import roles, user_search
from accounts.models import User, canonicalize_email
from roombook.ids import parse_id


def get_customer_filter(
    staff: User | AnonymousUser | None, path: str = "pk", permission: str = roles.VIEW_USER
) -> Q:
    """Return a filter for rows of the customers of the centers at which the user may do that.

    ``path`` leads from a row to an account.
    """
    centers = roles.get_permitted_centers(staff, permission)
    if centers is None:
        return Q()
    booked = _get_bookings().filter(room__center__in=sorted(centers))
    return Q(**{f"{path}__in": booked.values("user")})


def _get_bookings() -> QuerySet[Any]:
    # The relation leads to the model, because this app must not import reservations.
    reservations = User._meta.get_field("reservations").related_model
    return reservations._default_manager.filter(booked_at__isnull=False)


def get_account_filter(staff: User | AnonymousUser | None, path: str = "") -> Q:
    """Return a filter for the accounts that the user may view, or for rows of such accounts.

    ``path`` leads from a row to its account; "" if the rows are accounts.
    """
    return get_customer_filter(staff, path or "pk") & get_staff_filter(staff, path)


def get_staff_filter(staff: User | AnonymousUser | None, path: str = "") -> Q:
    """Return a filter that excludes the accounts of staff, except for administrators.

    ``path`` leads from a row to its account; "" if the rows are accounts.
    """
    if isinstance(staff, User) and staff.is_superuser:
        return Q()
    prefix = f"{path}__" if path else ""
    return Q(**{f"{prefix}is_staff": False, f"{prefix}is_superuser": False})


def can_view_customer(staff: User | AnonymousUser, customer: User) -> bool:
    return User.objects.filter(get_account_filter(staff), pk=customer.pk).exists()


def can_correct_customer(staff: User | AnonymousUser, customer: User) -> bool:
    """Return whether the user may correct name, phone number and address of a customer (B22.13)."""
    found = get_customer_filter(staff, permission=roles.CORRECT_USER)
    rows = User.objects.filter(found, pk=customer.pk, is_staff=False, is_superuser=False)
    return rows.exists() and can_view_customer(staff, customer)


def can_correct_address(staff: User | AnonymousUser, customer: User) -> bool:
    """Return whether the user may correct the e-mail address of such a customer (B22.13).

    Who reads it can set a password and sign in. So an account that its owner signs in to, or that
    has booked at other centers too, is corrected only by those who may do so at all centers.
    """
    centers = roles.get_permitted_centers(staff, roles.CORRECT_USER)
    if centers is None:
        return True
    elsewhere = _get_bookings().filter(user=customer.pk).exclude(room__center__in=sorted(centers))
    return not customer.has_usable_password() and not elsewhere.exists()


def find_bookable_account(staff: User | None, key: str) -> User | None:
    """Return the account that the user may book for: by its complete e-mail address, or by the id
    of one of the user's customers."""
    if "@" in key:
        found = get_staff_filter(staff) & Q(email=canonicalize_email(key))
    else:
        found = get_account_filter(staff) & Q(pk=parse_id(key) or 0)
    return User.objects.filter(found, is_active=True).first()


def find_bookable_customers(staff: User, words: str) -> QuerySet[User]:
    """Return the accounts that the user may book for.

    ``words`` are searched among the user's own customers; a complete e-mail address finds anybody.
    """
    active = User.objects.filter(is_active=True).order_by("email")
    # PostgreSQL accepts no NUL, and no address contains one.
    if "@" in words and "\x00" not in words and roles.has_permission(staff, roles.ADD_RESERVATION):
        exact = active.filter(get_staff_filter(staff), email=canonicalize_email(words))
        if exact.exists():
            return exact
    return user_search.filter_users(active.filter(get_account_filter(staff)), words)


def get_search_filter(staff: User | AnonymousUser, words: str, path: str = "user") -> Q:
    """Return a filter for rows whose customer matches the words.

    The rows show the names of all customers, and their pages the complete e-mail address. Parts of
    addresses, and phone numbers, are searched only in the accounts that the user may view.
    ``path`` leads from a row to its customer.
    """
    visible = User.objects.filter(get_account_filter(staff))
    by_address = user_search.load_ids(user_search.filter_users(visible, words))
    by_name = user_search.find_users(words, by_address=False)
    found = Q(**{f"{path}__in": by_address}) | Q(**{f"{path}__in": by_name})
    if "@" in words and "\x00" not in words and roles.has_permission(staff, roles.VIEW_USER):
        exact = User.objects.filter(email=canonicalize_email(words))
        found |= Q(**{f"{path}__in": list(exact.values_list("pk", flat=True))})
    return found
