"""Which rows staff may import and export, by their roles (B18)."""

from typing import Any

from django.contrib.auth import get_permission_codename

from accounts import roles
from roombook.imports.sheet import Allowed, Centers, Sheet


class ByRole(Sheet):
    """Rows that belong to centers: somebody's own, where their role lets them change such rows.

    Reports are for taking out too, so who sees those (the Accountant) may export what they view.
    """

    # Rows that belong to no center are for those only who may change them everywhere.
    belongs_to_a_center = True

    @classmethod
    def allowed_for(cls, user: Any) -> Allowed | None:
        add, change = cls._centers(user, "add"), cls._centers(user, "change")
        allowed = Allowed(add=add, change=change, export=cls._exported(user, change))
        if not cls.belongs_to_a_center:
            may_import = add is None and change is None
            may_export = allowed.export is None
            if not (may_import or may_export):
                return None
            nowhere: Centers = set()
            return Allowed(
                add=None if may_import else nowhere,
                change=None if may_import else nowhere,
                export=None if may_export else nowhere,
            )
        return allowed if allowed.may_import or allowed.may_export else None

    @classmethod
    def _exported(cls, user: Any, change: Centers) -> Centers:
        seen, reported = cls._centers(user, "view"), _set(roles.centers_of(user, REPORTS))
        if change is None or (seen is None and reported is None):
            return None
        both = seen if reported is None else reported if seen is None else seen & reported
        return change | (both or set())

    @classmethod
    def _centers(cls, user: Any, action: str) -> Centers:
        opts = cls._meta.model._meta
        name = f"{opts.app_label}.{get_permission_codename(action, opts)}"
        return _set(roles.centers_of(user, name))


REPORTS = "reservations.see_reports"


def _set(centers: frozenset[int] | None) -> Centers:
    return None if centers is None else set(centers)
