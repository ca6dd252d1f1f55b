"""Closures."""

from zoneinfo import ZoneInfo

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from centers import models
from centers.admin.common import zone_of_center
from centers.signals import closure_saved
from roombook.admin import CenterClock, ModelAdmin, number


@admin.register(models.Closure)
class ClosureAdmin(CenterClock, ModelAdmin):
    """Closures, on the clock of their center."""

    list_display = ("center", "room", "starts", "ends", "reason")
    list_filter = ("starts_at",)
    list_select_related = ("center", "room")
    search_fields = ("reason", "center__name", "center__city", "room__name")
    ordering = ("-starts_at", "pk")
    date_hierarchy = "starts_at"
    autocomplete_fields = ("center", "room")

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        asked = request.POST.get("center") or request.GET.get("center")
        if asked:
            return zone_of_center(asked)
        closures = models.Closure.objects.select_related("center")
        closure = closures.filter(pk=number(object_id) or 0).first()
        return closure.center.zone if closure else None

    def save_model(
        self,
        request: HttpRequest,
        obj: models.Closure,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_model(request, obj, form, change)
        closure_saved.send(models.Closure, closure=obj, request=request)

    @admin.display(ordering="starts_at")
    def starts(self, closure: models.Closure) -> str:
        return f"{closure.starts_at.astimezone(closure.center.zone):%Y-%m-%d %H:%M %Z}"

    @admin.display(ordering="ends_at")
    def ends(self, closure: models.Closure) -> str:
        return f"{closure.ends_at.astimezone(closure.center.zone):%Y-%m-%d %H:%M %Z}"
