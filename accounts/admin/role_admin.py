"""Roles in the back office; only superusers may grant them."""

from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.admin.center_scope import SuperuserOnlyMixin
from accounts.models import CenterRole
from roombook.backoffice.model_admin import ModelAdmin

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(SuperuserOnlyMixin, auth_admin.GroupAdmin, ModelAdmin):
    """Roles and their permissions. Members and CenterRoles decide at which centers they apply."""

    list_display = ("name", "members")
    filter_horizontal = ()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Roles", **(extra_context or {})})

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, ...]:
        """List the roles only: rows that join them to their permissions have no names."""
        _, _, permissions, protected = super().get_deleted_objects(objs, request)
        return [str(each) for each in objs], {"roles": len(objs)}, permissions, protected

    @admin.display(description="has the role at")
    def members(self, group: Group) -> str:
        everywhere = group.user_set.count()
        at_centers = CenterRole.objects.filter(group=group).values("user").distinct().count()
        return f"all centers: {everywhere}, some centers: {at_centers}"

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer what the back office can do, by the name of its pages, as checkboxes."""
        # What is on other objects' pages, such as attendees, is known by the roles that have it.
        permissions = Permission.objects.filter(
            Q(content_type__in=_get_content_types()) | Q(group__isnull=False)
        ).distinct()
        field = forms.ModelMultipleChoiceField(
            permissions,
            label="May",
            required=False,
            widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        )
        groups: dict[str, list[tuple[int, str]]] = {}
        for permission in permissions.select_related("content_type"):
            model: Any = permission.content_type.model_class()
            title = str(capfirst(model._meta.verbose_name_plural))
            groups.setdefault(title, []).append((permission.pk, get_label(permission)))
        field.choices = sorted(groups.items())
        return field


def get_label(permission: Permission) -> str:
    """Return "View", "Add", "Change" or "Delete", or the name of another permission."""
    action = permission.codename.partition("_")[0]
    is_default = permission.codename == f"{action}_{permission.content_type.model}"
    return str(capfirst(action)) if is_default else permission.name


def _get_content_types() -> list[ContentType]:
    """Return the models whose pages roles can open: all but those for administrators only."""
    models = [
        model
        for model in apps.get_models()
        if admin.site.is_registered(model)
        and not isinstance(admin.site.get_model_admin(model), SuperuserOnlyMixin)
    ]
    return list(ContentType.objects.get_for_models(*models).values())
