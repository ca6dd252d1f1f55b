"""Closures of centers and rooms."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.admin import holidays
from centers.admin.closure_forms import ClosureForm
from centers.admin.common import CenterSearchMixin, get_center_zone
from centers.closure_effects import find_effects
from centers.models.schedule import closure_saved
from centers.resources.closures import ClosureResource
from roombook import dates
from roombook.backoffice.model_admin import LocalTimeMixin, ModelAdmin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin


@admin.register(models.Closure)
class ClosureAdmin(
    ImportExportAdminMixin,
    CenterSearchMixin,
    CenterScopedMixin,
    LocalTimeMixin,
    ModelAdmin,
):
    """Closures. Times are in the local time of their center."""

    resource_class = ClosureResource
    form = ClosureForm
    fields = ("center", "room", "starts_at", "ends_at", "reason")
    list_display = ("reason_display", "center", "room", "local_start", "local_end")
    list_filter = ("starts_at", ("room", admin.EmptyFieldListFilter))
    list_select_related = ("center", "room")
    list_before_template = "centers/closures_before.html"
    search_fields = ("reason",)
    search_column = "reason"
    search_help_text = "Reason; name, address or neighborhood of the center"
    ordering = ("-starts_at", "-pk")
    sortable_by = ()
    autocomplete_fields = ("center", "room")

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        center = request.POST.get("center") or request.GET.get("center")
        if center:
            return get_center_zone(center)
        closures = models.Closure.objects.select_related("center")
        closure = closures.filter(pk=parse_id(object_id) or 0).first()
        return closure.center.zone if closure else None

    def save_model(self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any) -> None:
        super().save_model(request, obj, *args, **kwargs)
        closure_saved.send(models.Closure, closure=obj, request=request)

    def response_post_save_add(
        self, request: HttpRequest, obj: models.Closure
    ) -> HttpResponseRedirect:
        return self._redirect_to_effects(request, obj) or super().response_post_save_add(
            request, obj
        )

    def response_post_save_change(
        self, request: HttpRequest, obj: models.Closure
    ) -> HttpResponseRedirect:
        return self._redirect_to_effects(request, obj) or super().response_post_save_change(
            request, obj
        )

    def _redirect_to_effects(
        self, request: HttpRequest, closure: models.Closure
    ) -> HttpResponseRedirect | None:
        """Lead to the page that resolves what the closure affects, if there is anything."""
        effects = find_effects([closure])
        if effects is None or not effects.url:
            return None
        is_permitted = roles.has_permission(
            request.user, roles.CHANGE_RESERVATION, closure.center_id
        )
        return HttpResponseRedirect(effects.url) if is_permitted else None

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.holidays_view)
        return [path("holidays/", view, name="centers_closure_holidays"), *super().get_urls()]

    def holidays_view(self, request: HttpRequest) -> HttpResponse:
        return holidays.render_page(self, request)

    @admin.display(description="reason")
    def reason_display(self, closure: models.Closure) -> str:
        return closure.reason or "no reason given"

    @admin.display(description="starts", ordering="starts_at")
    def local_start(self, closure: models.Closure) -> str:
        return dates.format_datetime(closure.starts_at, closure.center.zone)

    @admin.display(description="ends", ordering="ends_at")
    def local_end(self, closure: models.Closure) -> str:
        return dates.format_datetime(closure.ends_at, closure.center.zone)
