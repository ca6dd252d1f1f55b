"""Roles in the back office; only superusers may grant them."""

from django.contrib import admin
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts import user_search
from accounts.admin.center_scope import SuperuserOnlyMixin
from accounts.models import CenterRole
from roombook.backoffice.model_admin import ModelAdmin, TabularInline

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(SuperuserOnlyMixin, auth_admin.GroupAdmin, ModelAdmin):
    """Roles and their permissions. Members and CenterRoles decide at which centers they apply."""

    list_display = ("name", "members")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {"title": "Roles", **(extra_context or {})})

    @admin.display(description="has the role at")
    def members(self, group: Group) -> str:
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
    # A member with more centers than fit on a page should have the role at all centers.
    per_page = 50


@admin.register(CenterRole)
class CenterRoleAdmin(SuperuserOnlyMixin, ModelAdmin):
    list_display = ("user", "group", "center")
    list_filter = ("group",)
    list_select_related = ("user", "group", "center")
    search_fields = ("user__email",)
    search_help_text = "The beginning of the e-mail address or name of a member of staff."
    ordering = ("-pk",)
    sortable_by = ()
    autocomplete_fields = ("user", "center")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        if not search_term.strip():
            return queryset, False
        return queryset.filter(user__in=user_search.find_users(search_term)), False
