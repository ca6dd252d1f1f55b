"""Who of the staff may do what: handed out by administrators alone."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from accounts import user_search
from accounts.admin.center_scope import SuperuserOnlyMixin
from accounts.models import CenterRole
from roombook.backoffice.model_admin import ModelAdmin, TabularInline

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(SuperuserOnlyMixin, auth_admin.GroupAdmin, ModelAdmin):
    """Roles. What each may do is one list; at which centers, the members or CenterRoles say."""

    list_display = ("name", "people")

    @admin.display(description="has the role at")
    def people(self, group: Group) -> str:
        everywhere = group.user_set.count()
        at_centers = CenterRole.objects.filter(group=group).values("user").distinct().count()
        return f"all centers: {everywhere}, some centers: {at_centers}"


class CenterRoleInline(SuperuserOnlyMixin, TabularInline):
    """The roles of one member of staff."""

    model = CenterRole
    fields = ("group", "center")
    autocomplete_fields = ("center",)
    ordering = ("group", "pk")
    classes = ("no-names",)
    extra = 0
    # Somebody with more has the role everywhere, by the group.
    per_page = 50


@admin.register(CenterRole)
class CenterRoleAdmin(SuperuserOnlyMixin, ModelAdmin):
    list_display = ("user", "group", "center")
    list_filter = ("group",)
    list_select_related = ("user", "group", "center")
    search_fields = ("user__email",)
    search_help_text = "How the e-mail address or a name of a member of staff begins."
    ordering = ("-pk",)
    sortable_by = ()
    autocomplete_fields = ("user", "center")

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        if not search_term.strip():
            return queryset, False
        return queryset.filter(user__in=user_search.matching_prefix(search_term)), False
