"""Pages of the back office that show staff the rows of their centers only (B18)."""

from typing import Any

from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest

from accounts import roles


class AtCenters:
    """A ModelAdmin whose rows belong to centers: list, page, boxes and actions keep to theirs.

    `center_path` leads from a row to its center ("room__center"); "" where the row is a center.
    Stands before ModelAdmin among the bases.
    """

    center_path = "center"

    def center_id(self, row: Model) -> int | None:
        """The center that a row belongs to."""
        *steps, last = (self.center_path or "pk").split("__")
        for step in steps:
            row = getattr(row, step)
        return getattr(row, last if last == "pk" else f"{last}_id")

    def permission(self, action: str) -> str:
        opts = self.opts  # type: ignore[attr-defined]
        return f"{opts.app_label}.{get_permission_codename(action, opts)}"

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        seen = (self.permission("view"), self.permission("change"))
        rows: QuerySet = super().get_queryset(request)  # type: ignore[misc]
        return rows.filter(roles.scope(request.user, seen, self.center_path))

    # Permissions of a row

    def _may(self, request: HttpRequest, action: str, row: Model | None) -> bool:
        center = None if row is None or row._state.adding else self.center_id(row)
        return roles.may(request.user, self.permission(action), center)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_view_permission(request, obj)  # type: ignore[misc]
        return may and (self._may(request, "view", obj) or self._may(request, "change", obj))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_change_permission(request, obj)  # type: ignore[misc]
        return may and self._may(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)  # type: ignore[misc]
        return may and self._may(request, "delete", obj)

    # What a row may be made to belong to

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        """Choices are of those centers where the row may be put."""
        first, _, rest = self.center_path.partition("__")
        if db_field.name == first and "queryset" not in kwargs:
            puts = (self.permission("add"), self.permission("change"))
            kwargs["queryset"] = db_field.related_model._default_manager.filter(
                roles.scope(request.user, puts, rest)
            )
        return super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **kwargs
        )

    def save_model(
        self,
        request: HttpRequest,
        obj: Model,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        """Refuse a row that was put, by hand, where they may not put one."""
        if self.center_path and not roles.may(
            request.user, self.permission("change" if change else "add"), self.center_id(obj)
        ):
            raise PermissionDenied
        super().save_model(request, obj, form, change)  # type: ignore[misc]


class InlineAtCenter:
    """Rows on the page of something that belongs to a center: their permission is asked there."""

    def _center_id(self, parent: Model | None) -> int | None:
        page: Any = self.admin_site._registry.get(self.parent_model)  # type: ignore[attr-defined]
        if parent is None or parent._state.adding or not isinstance(page, AtCenters):
            return None
        return page.center_id(parent)

    def _may(self, request: HttpRequest, action: str, parent: Model | None) -> bool:
        opts = self.opts  # type: ignore[attr-defined]
        permission = f"{opts.app_label}.{get_permission_codename(action, opts)}"
        return roles.may(request.user, permission, self._center_id(parent))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_view_permission(request, obj)  # type: ignore[misc]
        return may and (self._may(request, "view", obj) or self._may(request, "change", obj))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_add_permission(request, obj)  # type: ignore[misc]
        return may and self._may(request, "add", obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_change_permission(request, obj)  # type: ignore[misc]
        return may and self._may(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)  # type: ignore[misc]
        return may and self._may(request, "delete", obj)
