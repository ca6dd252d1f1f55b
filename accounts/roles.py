"""Roles and permissions of staff, at single centers or at all centers (B18).

A role is one of Django's groups: Viewer, Desk, Manager, Accountant, or one that a company adds. A
member of the group has the role at all centers; a CenterRole gives it at one center. Permissions
have Django's names. A superuser may do everything everywhere.
"""

from collections import defaultdict
from collections.abc import Iterable

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import HttpRequest

from accounts.models import CenterRole, User

CentersByPermission = dict[str, frozenset[int]]

# Permissions that pages of the back office check themselves.
ADD_USER, VIEW_USER = "accounts.add_user", "accounts.view_user"
ERASE_USER, CORRECT_USER = "accounts.erase_user", "accounts.correct_user"
VIEW_EMAIL = "accounts.view_outboxmessage"
VIEW_DISPUTE, VIEW_PAYMENT = "payments.view_dispute", "payments.view_payment"
ADD_RESERVATION = "reservations.add_reservation"
CHANGE_RESERVATION = "reservations.change_reservation"
VIEW_RESERVATION = "reservations.view_reservation"
VIEW_ATTENDEE = "reservations.view_attendee"
VIEW_NOTE, ADD_NOTE = "reservations.view_note", "reservations.add_note"
DELETE_NOTE = "reservations.delete_note"
ADD_RECEIPT, VIEW_RECEIPT = "reservations.add_receipt", "reservations.view_receipt"
ADD_SELLER = "reservations.add_seller"
SEE_REPORTS = "reservations.see_reports"
VIEW_CENTER = "centers.view_center"
CHANGE_UNKNOWN_PAYMENT = "payments.change_unknownpayment"
VIEW_UNKNOWN_PAYMENT = "payments.view_unknownpayment"
TAKE_ON_ACCOUNT = "payments.take_on_account"
MARK_RECEIVED = "payments.mark_received"
CHANGE_REFUND, VIEW_REFUND = "payments.change_refund", "payments.view_refund"
VIEW_WEBHOOK = "reservations.view_webhookendpoint"


def has_permission(
    user: User | AnonymousUser, permission: str, center_id: int | None = None
) -> bool:
    """Whether the user has the permission at that center or, without a center, at any center."""
    if center_id is None:
        return user.has_perm(permission)
    centers = get_permitted_centers(user, permission)
    return centers is None or center_id in centers


def has_permission_everywhere(user: User | AnonymousUser, permission: str) -> bool:
    """Whether the user has the permission at every center, including future ones."""
    return get_permitted_centers(user, permission) is None


def get_permitted_centers(
    user: User | AnonymousUser | None, permission: str
) -> frozenset[int] | None:
    """Return the ids of the centers with the permission; None means every center."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser or permission in ModelBackend().get_all_permissions(user):
        return None
    return _load_centers_by_permission(user).get(permission, frozenset())


def get_staff(request: HttpRequest) -> User:
    """Return the user of a request to the admin site, which admits only staff."""
    assert isinstance(request.user, User)
    return request.user


def require_permission(request: HttpRequest, *permissions: str) -> User:
    """Return the user; raise PermissionDenied without one of the permissions at any center."""
    if not any(has_permission(request.user, permission) for permission in permissions):
        raise PermissionDenied
    return get_staff(request)


def get_center_filter(
    user: User | AnonymousUser, permission: str | Iterable[str], path: str = "room__center"
) -> Q:
    """Return a filter for rows of centers at which the user has one of the permissions.

    ``path`` leads from a row to its center; "" if the rows are centers.
    """
    ids: set[int] = set()
    for name in [permission] if isinstance(permission, str) else permission:
        centers = get_permitted_centers(user, name)
        if centers is None:
            return Q()
        ids |= centers
    return Q(**{f"{path or 'pk'}__in": sorted(ids)})


class CenterRoleBackend(ModelBackend):
    """Grants the permissions that a user has at any center.

    ``has_perm`` is therefore enough to show a list, whose rows ``get_center_filter`` selects, but
    not to change a row: ``has_permission`` decides that.
    """

    def get_all_permissions(
        self, user_obj: User | AnonymousUser, obj: Model | None = None
    ) -> set[str]:
        everywhere = super().get_all_permissions(user_obj, obj)
        if obj is not None or not isinstance(user_obj, User) or not user_obj.is_active:
            return everywhere
        return everywhere | _load_centers_by_permission(user_obj).keys()

    def has_perm(self, user_obj: User | AnonymousUser, perm: str, obj: Model | None = None) -> bool:
        return user_obj.is_active and perm in self.get_all_permissions(user_obj, obj)


def _load_centers_by_permission(user: User) -> CentersByPermission:
    """Return each permission that the user has by roles at centers, with the centers.

    Cached on the user object, which lives as long as the request.
    """
    cached: CentersByPermission | None = getattr(user, "_centers_by_permission", None)
    if cached is not None:
        return cached
    centers_by_group: dict[int, set[int]] = defaultdict(set)
    for group, center in CenterRole.objects.filter(user=user).values_list("group", "center"):
        centers_by_group[group].add(center)
    centers_by_permission: dict[str, set[int]] = defaultdict(set)
    if centers_by_group:
        rows = Group.objects.filter(pk__in=centers_by_group).values_list(
            "pk", "permissions__content_type__app_label", "permissions__codename"
        )
        for group, app, codename in rows:
            centers_by_permission[f"{app}.{codename}"] |= centers_by_group[group]
    result = {name: frozenset(centers) for name, centers in centers_by_permission.items()}
    user._centers_by_permission = result  # type: ignore[attr-defined]
    return result
