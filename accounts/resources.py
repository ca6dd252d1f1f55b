"""Which rows staff may import and export, by their roles (B18)."""

from typing import Any, ClassVar

from django.contrib.auth import get_permission_codename
from django.db import models

from accounts import roles
from roombook.imports.sheet import CenterIdSet, ImportRights, SpreadsheetResource

REPORTS = "reservations.see_reports"


class CenterScopedResource(SpreadsheetResource):
    """Rows that belong to centers: somebody's own, where their role lets them change such rows.

    Reports are for taking out too, so who sees those (the Accountant) may export what they view.
    """

    # Leads from a row to its center. None where it belongs to none: such rows are for those only
    # who may change them everywhere.
    center_path: ClassVar[str | None] = "center"
    # Foreign keys that a row shows.
    related: ClassVar[tuple[str, ...]] = ()
    # How an export is sorted.
    order: ClassVar[tuple[str, ...]] = ("pk",)

    @classmethod
    def allowed_for(cls, user: Any) -> ImportRights:
        add, change = cls._centers(user, "add"), cls._centers(user, "change")
        export = cls._exported(user, change)
        if cls.center_path is None:
            nowhere: CenterIdSet = set()
            write = None if add is None and change is None else nowhere
            return ImportRights(write, write, None if export is None else nowhere)
        return ImportRights(add, change, export)

    @classmethod
    def _exported(cls, user: Any, change: CenterIdSet) -> CenterIdSet:
        seen, reported = (
            cls._centers(user, "view"),
            _set(roles.get_permitted_centers(user, REPORTS)),
        )
        if change is None or (seen is None and reported is None):
            return None
        both = seen if reported is None else reported if seen is None else seen & reported
        return change | (both or set())

    @classmethod
    def _centers(cls, user: Any, action: str) -> CenterIdSet:
        opts = cls._meta.model._meta
        name = f"{opts.app_label}.{get_permission_codename(action, opts)}"
        return _set(roles.get_permitted_centers(user, name))

    def stored(self) -> models.QuerySet[Any]:
        return self._rows_at(self.allowed.change)

    def exported(self) -> models.QuerySet[Any]:
        return self._rows_at(self.allowed.export).order_by(*self.order)

    def _rows_at(self, centers: CenterIdSet) -> models.QuerySet[Any]:
        # Nothing told, Django would follow every key.
        rows = self._meta.model._default_manager.select_related(*self.related or (None,))
        if self.center_path is None or centers is None:
            return rows
        return rows.filter(**{f"{self.center_path}__in": centers})


def _set(centers: frozenset[int] | None) -> CenterIdSet:
    return None if centers is None else set(centers)
