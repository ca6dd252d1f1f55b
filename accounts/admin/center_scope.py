"""Pages of the back office that show staff the rows of their centers only (B18).

Every ModelAdmin has one of these among its bases: `AtCenters` where a row belongs to a center,
`OfAllCenters` where it belongs to none in particular, `ForAdministrators` where it is power.
Inlines of a center's page have `InlineAtCenter`. tests/backoffice/test_roles.py walks all of them.
"""

from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, QuerySet
from django.db.models.fields.related import RelatedField
from django.forms import ModelChoiceField, ModelForm, ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse

from accounts import roles
from roombook.backoffice.typing_bases import AnyAdminBase, InlineAdminBase, ModelAdminBase
from roombook.ids import parse_id

DJANGO_ACTIONS = {"add", "change", "delete", "view"}


def get_scoped_choices(site: Any, request: HttpRequest, db_field: RelatedField) -> QuerySet | None:
    """The rows of their centers that a box may offer; None where rows belong to no center."""
    page = site._registry.get(db_field.related_model)
    if not isinstance(page, CenterScopedMixin):
        return None
    seen = (page.permission("view"), page.permission("change"))
    rows = db_field.related_model._default_manager.all()
    return rows.filter(roles.get_center_filter(request.user, seen, page.center_path))


class ScopedChoicesMixin(AnyAdminBase):
    """Boxes of a form offer, and take, rows of their centers only."""

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        kwargs = self._scoped(db_field, request, kwargs)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> ModelMultipleChoiceField | None:
        kwargs = self._scoped(db_field, request, kwargs)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def _scoped(
        self, db_field: RelatedField, request: HttpRequest, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        rows = None if "queryset" in kwargs else self.get_choices_for_field(db_field, request)
        return kwargs if rows is None else {**kwargs, "queryset": rows}

    def get_choices_for_field(
        self, db_field: RelatedField, request: HttpRequest
    ) -> QuerySet | None:
        return get_scoped_choices(self.admin_site, request, db_field)


class RolePermissionsMixin(AnyAdminBase):
    """Django's questions about a row, put to the roles as well.

    Who may add is each class's own word: Django asks pages and inlines for it differently.
    """

    def permission(self, action: str) -> str:
        """What a permission of the page's model is called."""
        return f"{self.opts.app_label}.{get_permission_codename(action, self.opts)}"

    def _has_role_permission(self, request: HttpRequest, action: str, obj: Any = None) -> bool:
        """Whether their roles let them, beyond what Django asks."""
        raise NotImplementedError

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_view_permission(request, obj)
        return may and (
            self._has_role_permission(request, "view", obj)
            or self._has_role_permission(request, "change", obj)
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and self._has_role_permission(
            request, "change", obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and self._has_role_permission(
            request, "delete", obj
        )


class CenterScopedMixin(ScopedChoicesMixin, RolePermissionsMixin, ModelAdminBase):
    """A ModelAdmin whose rows belong to centers: list, page, boxes and actions keep to theirs.

    `center_path` leads from a row to its center ("room__center"); "" where the row is a center.
    Stands before ModelAdmin among the bases, and before all that saves without asking further.
    """

    center_path = "center"
    # Actions may ask for more than Django's four; each then names its permission here.
    action_permissions: dict[str, str] = {}

    def center_id(self, row: Model) -> int | None:
        """The center that a row belongs to."""
        *steps, last = (self.center_path or "pk").split("__")
        for step in steps:
            row = getattr(row, step)
        return getattr(row, last if last == "pk" else f"{last}_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        seen = (self.permission("view"), self.permission("change"))
        rows = super().get_queryset(request)
        return rows.filter(roles.get_center_filter(request.user, seen, self.center_path))

    # Permissions of a row

    def _has_role_permission(self, request: HttpRequest, action: str, obj: Any = None) -> bool:
        center = None if obj is None or obj._state.adding else self.center_id(obj)
        return roles.has_permission(request.user, self.permission(action), center)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A new center belongs to nobody yet: only who may add everywhere makes one."""
        may = super().has_add_permission(request)
        if self.center_path:
            return may
        return may and roles.has_permission_everywhere(request.user, self.permission("add"))

    # What a row may be made to belong to

    def get_choices_for_field(
        self, db_field: RelatedField, request: HttpRequest
    ) -> QuerySet | None:
        """The box that puts a row at a center offers those where rows may be put."""
        first, _, rest = self.center_path.partition("__")
        if db_field.name != first:
            return super().get_choices_for_field(db_field, request)
        puts = (self.permission("add"), self.permission("change"))
        rows = db_field.related_model._default_manager.all()
        return rows.filter(roles.get_center_filter(request.user, puts, rest))

    def save_model(
        self,
        request: HttpRequest,
        obj: Model,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        """Refuse a row that is, or was put by hand, where they may not have one.

        Lists that are edited come here too, with rows that are only seen among theirs.
        """
        action = "change" if change else "add"
        if not (self.center_path or change):
            may = roles.has_permission_everywhere(request.user, self.permission("add"))
        else:
            may = roles.has_permission(request.user, self.permission(action), self.center_id(obj))
        if not may:
            raise PermissionDenied
        super().save_model(request, obj, form, change)

    # Actions

    def response_action(  # type: ignore[override]  # the stubs are of a later Django
        self, request: HttpRequest, queryset: QuerySet
    ) -> HttpResponse | None:
        """Hand an action only the rows at whose centers it is allowed: lists show more."""
        action = self.get_actions(request).get(request.POST.get("action", ""))
        for name in getattr(action and action[0], "allowed_permissions", ()):
            permission = self.action_permissions.get(name)
            if permission is None and name in DJANGO_ACTIONS:
                permission = self.permission(name)
            if permission is None:
                raise PermissionDenied
            allowed = roles.get_center_filter(request.user, permission, self.center_path)
            ticked = [parse_id(each) for each in request.POST.getlist(ACTION_CHECKBOX_NAME)]
            others = queryset.filter(pk__in=[each for each in ticked if each is not None])
            if allowed and others.exclude(allowed).exists():
                words = "Rows of centers where you may not do this were left out."
                self.message_user(request, words, messages.WARNING)
            queryset = queryset.filter(allowed)
        return super().response_action(request, queryset)


class SharedRowsMixin(ScopedChoicesMixin, RolePermissionsMixin, ModelAdminBase):
    """A ModelAdmin whose rows belong to no center in particular: promo codes, types of rooms.

    Seen where a role says so; changed only by who may do so at every center, since a change is
    one for all of them.
    """

    def _has_role_permission(self, request: HttpRequest, action: str, obj: Any = None) -> bool:
        return roles.has_permission_everywhere(request.user, self.permission(action))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and self._has_role_permission(request, "add")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Django lets see who may change anywhere; here that is no right to change.
        return request.user.has_perm(self.permission("view")) or self._has_role_permission(
            request, "change"
        )


class AllCentersOnlyMixin(SharedRowsMixin):
    """Rows that are not even seen by who has a role at some centers only: mails, the history."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_view_permission(request, obj)
        return may and (
            self._has_role_permission(request, "view")
            or self._has_role_permission(request, "change")
        )


class SuperuserOnlyMixin(AnyAdminBase):
    """What gives power to others: only a superuser may, whatever permissions somebody has."""

    def _has_role_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_active and request.user.is_superuser

    has_module_permission = has_add_permission = _has_role_permission
    has_view_permission = has_change_permission = has_delete_permission = _has_role_permission


class CenterScopedInlineMixin(ScopedChoicesMixin, RolePermissionsMixin, InlineAdminBase):
    """Rows on the page of something that belongs to a center: their permission is asked there."""

    def _has_role_permission(self, request: HttpRequest, action: str, obj: Any = None) -> bool:
        """`obj` is what the page shows."""
        page = self.admin_site._registry.get(self.parent_model)
        center = None
        if isinstance(page, CenterScopedMixin) and obj is not None and not obj._state.adding:
            center = page.center_id(obj)
        return roles.has_permission(request.user, self.permission(action), center)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_add_permission(request, obj) and self._has_role_permission(
            request, "add", obj
        )
