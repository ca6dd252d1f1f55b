"""The rows that staff may import and export, by their roles and centers (B18)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import AnonymousUser
from django.db import models

from accounts import roles
from accounts.models import User
from roombook.imports.checking import RowT
from roombook.imports.resources import SpreadsheetResource

# Ids of centers; None means every center.
CenterIds = frozenset[int] | None
NO_CENTERS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ImportRights:
    """The centers at which a user may add, change and export rows; by default all."""

    add: CenterIds = None
    change: CenterIds = None
    export: CenterIds = None


class CenterScopedResource(SpreadsheetResource[RowT]):
    """A resource whose rows belong to centers. Only rows that the user's rights allow are included.

    Without a user, all rows are included. Staff who see reports (the Accountant) may export the
    rows that they may view.
    """

    # The lookup from a row to its center. None if rows belong to no center: then only users who
    # may change them everywhere may import them.
    center_path: ClassVar[str | None] = "center"
    # Foreign keys that a row displays.
    related: ClassVar[tuple[str, ...]] = ()
    user: User | AnonymousUser | None
    # The order of an export.
    order: ClassVar[tuple[str, ...]] = ("pk",)

    def __init__(self, user: User | AnonymousUser | None = None, **kwargs: Any) -> None:
        super().__init__(user, **kwargs)
        self.rights = ImportRights() if user is None else self._get_rights()
        self.can_import = self.rights.add != NO_CENTERS or self.rights.change != NO_CENTERS
        self.can_export = self.rights.export != NO_CENTERS

    def _get_rights(self) -> ImportRights:
        add, change = self._get_centers("add"), self._get_centers("change")
        export = self._get_export_centers(change)
        if self.center_path is None:
            write = None if add is None and change is None else NO_CENTERS
            return ImportRights(write, write, None if export is None else NO_CENTERS)
        return ImportRights(add, change, export)

    def _get_export_centers(self, change: CenterIds) -> CenterIds:
        viewed = self._get_centers("view")
        reported = roles.get_permitted_centers(self.user, roles.SEE_REPORTS)
        if change is None or (viewed is None and reported is None):
            return None
        both = viewed if reported is None else reported if viewed is None else viewed & reported
        return change | (both or NO_CENTERS)

    def _get_centers(self, action: str) -> CenterIds:
        opts = self._meta.model._meta
        codename = get_permission_codename(action, opts)
        return roles.get_permitted_centers(self.user, f"{opts.app_label}.{codename}")

    @property
    def written_centers(self) -> CenterIds:
        """Return the centers at which the user may add or change rows."""
        add, change = self.rights.add, self.rights.change
        return None if add is None or change is None else add | change

    def get_center_id(self, instance: RowT) -> int | None:
        """Return the id of a row's center; None if it belongs to none."""
        return None

    def can_add(self, instance: RowT) -> bool:
        return self.rights.add is None or self.get_center_id(instance) in self.rights.add

    def get_queryset(self) -> models.QuerySet[RowT]:
        """Return the rows that the user may change."""
        return self._get_rows_at(self.rights.change)

    def filter_export(
        self, queryset: models.QuerySet[RowT] | None, **kwargs: object
    ) -> models.QuerySet[RowT]:
        """Return the rows that the user may export, of all rows or of `queryset`."""
        rows = self._get_rows_at(self.rights.export).order_by(*self.order)
        return rows if queryset is None else rows.filter(pk__in=queryset.order_by().values("pk"))

    def _get_rows_at(self, centers: CenterIds) -> models.QuerySet[RowT]:
        # Without an argument, select_related would follow every foreign key.
        rows = self._meta.model._default_manager.select_related(*self.related or (None,))
        if self.center_path is None or centers is None:
            return rows
        return rows.filter(**{f"{self.center_path}__in": centers})
