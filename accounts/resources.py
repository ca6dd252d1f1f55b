"""The rows that staff may import and export, by their roles and centers (B18)."""

from typing import ClassVar

from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from accounts import roles
from accounts.models import User
from roombook.imports.resources import RowT, SpreadsheetResource

# Ids of centers; None means every center.
CenterIds = frozenset[int] | None


class CenterScopedResource(SpreadsheetResource[RowT]):
    """A resource whose rows belong to centers. Only rows that the user's roles allow are included.

    Without a user, all rows are included. Staff who see reports (the Accountant) may export the
    rows that they may view.
    """

    # The lookup from a row to its center. None if rows belong to no center: then only users who
    # may change them everywhere may import them.
    center_path: ClassVar[str | None] = "center"
    # The order of an export.
    order: ClassVar[tuple[str, ...]] = ("pk",)

    user: User | AnonymousUser | None

    def __init__(self, user: User | AnonymousUser | None = None) -> None:
        super().__init__(user)
        opts = self._meta.model._meta
        add, change, view = (
            self._get_centers(f"{opts.app_label}.{get_permission_codename(action, opts)}")
            for action in ("add", "change", "view")
        )
        reported = self._get_centers(roles.SEE_REPORTS)
        self.added_centers, self.changed_centers = add, change
        viewed = reported if view is None else view if reported is None else view & reported
        self.exported_centers = None if change is None or viewed is None else change | viewed
        self.can_import = change != frozenset()
        self.can_export = self.exported_centers != frozenset()

    def _get_centers(self, permission: str) -> CenterIds:
        if self.user is None:
            return None
        centers = roles.get_permitted_centers(self.user, permission)
        return centers if self.center_path or centers is None else frozenset()

    def get_center_id(self, instance: RowT) -> int | None:
        """The id of a row's center; None if it belongs to none."""
        return None

    def can_add(self, instance: RowT) -> bool:
        return self.added_centers is None or self.get_center_id(instance) in self.added_centers

    def get_queryset(self) -> QuerySet[RowT]:
        """The rows that the user may change."""
        return self._get_rows_at(self.changed_centers)

    def filter_export(self, queryset: QuerySet[RowT], **kwargs: object) -> QuerySet[RowT]:
        """The rows that the user may export, of those in `queryset`."""
        rows = self._get_rows_at(self.exported_centers).order_by(*self.order)
        return rows.filter(pk__in=queryset.order_by().values("pk"))

    def _get_rows_at(self, centers: CenterIds) -> QuerySet[RowT]:
        # Without an argument, select_related would follow every foreign key.
        rows = self._meta.model._default_manager.select_related(*self.related or (None,))
        where = Q() if centers is None else Q(**{f"{self.center_path or 'pk'}__in": centers})
        return rows.filter(where)
