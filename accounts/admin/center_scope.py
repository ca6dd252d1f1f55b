"""Mixins that show staff only the rows of their centers (B18).

Every ModelAdmin has one of these among its bases, before ModelAdmin and before every mixin that
saves rows without further checks: ``CenterScopedMixin`` if a row belongs to a center,
``SharedRowsMixin`` if it belongs to no center in particular, ``SuperuserOnlyMixin`` if it grants
privileges. Inlines of a center's page have ``CenterScopedInlineMixin``.
tests/backoffice/test_roles.py checks every page.
"""

from typing import Any, cast
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Min, Model, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.db.models.fields.related import RelatedField
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts import customer_access, roles
from accounts.models import CenterRole, User
from roombook import places
from roombook.backoffice.model_admin import LocalTimeMixin
from roombook.backoffice.typing_bases import AnyAdminBase, InlineAdminBase, ModelAdminBase
from roombook.ids import parse_id


def _get_center_scoped_admin(site: AdminSite, model: type[Model]) -> "CenterScopedMixin | None":
    try:
        model_admin = site.get_model_admin(model)
    except NotRegistered:
        return None
    return model_admin if isinstance(model_admin, CenterScopedMixin) else None


def get_shared_time_zone(
    request: HttpRequest, permission: str = roles.VIEW_CENTER, *, center_parameter: str = ""
) -> ZoneInfo:
    """Return the time zone of the center that a list is filtered by, or of the user's centers.

    UTC if the centers at which the user has the permission have several time zones: their days do
    not begin together.
    """
    center = CenterRole._meta.get_field("center").related_model
    rows = center._default_manager.filter(roles.get_center_filter(request.user, permission, ""))
    if (selected := parse_id(request.GET.get(center_parameter))) is not None:
        rows = rows.filter(pk=selected)
    # The index of the time zones answers this for any number of centers.
    found = rows.aggregate(first=Min("time_zone_id"), last=Max("time_zone_id"))
    is_shared = found["first"] and found["first"] == found["last"]
    return places.get_time_zone(found["first"] if is_shared else "UTC")


class SharedTimeZoneMixin(LocalTimeMixin):
    """Shows times in the time zone of the user's centers. List it before ModelAdmin."""

    def get_time_zone(self, request: HttpRequest, object_id: str | None = None) -> ZoneInfo:
        return get_shared_time_zone(request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        timezone.activate(self.get_time_zone(request))
        return super().changelist_view(request, extra_context)


class ScopedChoicesMixin(AnyAdminBase):
    """Selects of a form offer, and accept, only rows that the user may view."""

    def get_field_queryset(
        self, db: str | None, db_field: RelatedField, request: HttpRequest
    ) -> QuerySet | None:
        rows = self.get_choices_for_field(db_field, request)
        return super().get_field_queryset(db, db_field, request) if rows is None else rows

    def get_choices_for_field(
        self, db_field: RelatedField, request: HttpRequest
    ) -> QuerySet | None:
        """Return the rows that a select may offer; None if it may offer all."""
        if db_field.related_model is User:
            return User.objects.filter(customer_access.get_account_filter(request.user))
        model_admin = _get_center_scoped_admin(self.admin_site, db_field.related_model)
        if model_admin is None:
            return None
        visible = (
            model_admin.get_permission_name("view"),
            model_admin.get_permission_name("change"),
        )
        rows = db_field.related_model._default_manager.all()
        return rows.filter(roles.get_center_filter(request.user, visible, model_admin.center_path))


class RolePermissionsMixin(AnyAdminBase):
    """Checks the user's roles in addition to Django's permissions."""

    def get_permission_name(self, action: str) -> str:
        """Return the name of a permission of this page's model."""
        return f"{self.opts.app_label}.{get_permission_codename(action, self.opts)}"

    def get_list_time_zone(self, request: HttpRequest) -> ZoneInfo:
        """The time zone of a list's selected center, or that of all of the user's centers."""
        return get_shared_time_zone(
            request,
            self.get_permission_name("view"),
            center_parameter=f"{getattr(self, 'center_path', '')}__id__exact",
        )

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        """Whether a role of the user allows the action on this row, or on any row."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """``args`` is empty for a page; for an inline it is the object of the page."""
        return super().has_add_permission(request, *args) and self._has_role_permission(
            request, "add", *args
        )

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_view_permission(request, obj) and (
            self._has_role_permission(request, "view", obj)
            or self._has_role_permission(request, "change", obj)
        )

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and self._has_role_permission(
            request, "change", obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and self._has_role_permission(
            request, "delete", obj
        )


class CenterScopedMixin(ScopedChoicesMixin, RolePermissionsMixin, ModelAdminBase):
    """A ModelAdmin whose rows belong to centers.

    Its list, page, selects and actions show and change only rows of the user's centers.
    ``center_path`` leads from a row to its center ("room__center"); "" if the row is a center.
    """

    center_path = "center"
    # The full name of each permission that actions require besides Django's four.
    action_permissions: dict[str, str] = {}

    def get_center_id(self, row: Model) -> int | None:
        """Return the id of the center that a row belongs to."""
        *steps, last = (self.center_path or "pk").split("__")
        for step in steps:
            row = getattr(row, step)
        return getattr(row, last if last == "pk" else f"{last}_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        visible = (self.get_permission_name("view"), self.get_permission_name("change"))
        rows = super().get_queryset(request)
        return rows.filter(roles.get_center_filter(request.user, visible, self.center_path))

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        center = None if obj is None or obj._state.adding else self.get_center_id(obj)
        return self._has_permission_at(request, action, center)

    def _has_permission_at(self, request: HttpRequest, action: str, center: int | None) -> bool:
        permission = self.get_permission_name(action)
        if action == "add" and not self.center_path:
            # A new center belongs to no role yet.
            return roles.has_permission_everywhere(request.user, permission)
        return roles.has_permission(request.user, permission, center)

    def get_choices_for_field(
        self, db_field: RelatedField, request: HttpRequest
    ) -> QuerySet | None:
        """Offer centers at which the user may add or change rows."""
        first, _, rest = self.center_path.partition("__")
        if db_field.name != first:
            return super().get_choices_for_field(db_field, request)
        writable = (self.get_permission_name("add"), self.get_permission_name("change"))
        rows = db_field.related_model._default_manager.all()
        return rows.filter(roles.get_center_filter(request.user, writable, rest))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Select the only center at which the user may add rows."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        if self.center_path == "center":
            field = self.opts.get_field("center")
            rows = self.get_choices_for_field(cast("RelatedField", field), request)
            only = list(rows.values_list("pk", flat=True)[:2]) if rows is not None else []
            if len(only) == 1:
                initial.setdefault("center", only[0])
        return initial

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Refuse a row at a center where the user may not add or change rows.

        Editable lists call this too, for rows that the user may only view.
        """
        action = "change" if change else "add"
        if not self._has_permission_at(request, action, self.get_center_id(obj)):
            raise PermissionDenied
        super().save_model(request, obj, form, change)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet, *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run an action only on rows of centers where it is allowed; the list may show more."""
        action = self.get_actions(request).get(request.POST.get("action", ""))
        for name in getattr(action and action[0], "allowed_permissions", ()):
            permission = self.action_permissions.get(name, self.get_permission_name(name))
            allowed = roles.get_center_filter(request.user, permission, self.center_path)
            selected = [parse_id(each) for each in request.POST.getlist(ACTION_CHECKBOX_NAME)]
            rows = queryset.filter(pk__in=[pk for pk in selected if pk is not None])
            if allowed and rows.exclude(allowed).exists():
                text = "Rows of centers where you may not do this were skipped."
                self.message_user(request, text, messages.WARNING)
            queryset = queryset.filter(allowed)
        return super().response_action(request, queryset, *args, **kwargs)


class CenterTimeMixin(LocalTimeMixin, CenterScopedMixin):
    """Shows the times of a row in the time zone of its center."""

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        path = LOOKUP_SEP.join(filter(None, (self.center_path, "time_zone_id")))
        rows = self.model._default_manager.filter(pk=parse_id(object_id) or 0)
        name = rows.values_list(path, flat=True).first()
        return places.get_time_zone(name) if name else None


class CenterOrAllMixin(CenterScopedMixin):
    """Rows of one center or, without one, of all centers: those need the permission everywhere."""

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        if obj is not None and not obj._state.adding and self.get_center_id(obj) is None:
            permission = self.get_permission_name(action)
            return roles.has_permission_everywhere(request.user, permission)
        return super()._has_role_permission(request, action, obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Staff of single centers choose one of them."""
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field is not None and db_field.name == "center":
            permission = self.get_permission_name("change")
            field.required = not roles.has_permission_everywhere(request.user, permission)
        return field


class AllCentersOnlyMixin(ScopedChoicesMixin, RolePermissionsMixin, ModelAdminBase):
    """A ModelAdmin whose rows need a role at all centers: e-mails, the audit log."""

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        return roles.has_permission_everywhere(request.user, self.get_permission_name(action))


class SharedRowsMixin(AllCentersOnlyMixin):
    """A ModelAdmin whose rows belong to no center in particular, such as promo codes.

    They are visible to every role that may view them, and changed only by users who may do so at
    every center, since a change affects all of them.
    """

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        if action == "view":
            return request.user.has_perm(self.get_permission_name("view"))
        return super()._has_role_permission(request, action, obj)


class SuperuserOnlyMixin(AnyAdminBase):
    """A ModelAdmin whose rows grant privileges: only superusers may view or change them."""

    def _is_superuser(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.is_active and request.user.is_superuser

    has_module_permission = has_add_permission = _is_superuser
    has_view_permission = has_change_permission = has_delete_permission = _is_superuser


class CenterScopedInlineMixin(ScopedChoicesMixin, RolePermissionsMixin, InlineAdminBase):
    """An inline on the page of an object that belongs to a center; needs permissions there."""

    def _has_role_permission(
        self, request: HttpRequest, action: str, obj: Model | None = None
    ) -> bool:
        """``obj`` is the object of the page."""
        model_admin = _get_center_scoped_admin(self.admin_site, self.parent_model)
        center = None
        if model_admin is not None and obj is not None and not obj._state.adding:
            center = model_admin.get_center_id(obj)
        return roles.has_permission(request.user, self.get_permission_name(action), center)
