"""Closures, and forms that show what a closure, a center or a room affects before it is saved."""

from copy import copy
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from accounts.admin.date_range import DateRangeFilter
from centers import models
from centers.admin import holidays
from centers.admin.common import CenterSearchMixin, get_center_zone
from centers.closure_effects import (
    ClosureEffects,
    find_effects,
    find_effects_of_settings,
)
from centers.models import Closure
from centers.resources import ClosureResource
from roombook import dates
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import LocalTimeMixin, ModelAdmin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin

AFFECTING_FIELDS = {"center", "room", "starts_at", "ends_at"}


class SeenEffectsForm(ChangedFieldsForm):
    """Saved only when its effects were displayed, that is by submitting it a second time."""

    # The key of the effects that were displayed. It is part of the message that displays them,
    # because lists that can be edited render no hidden fields.
    seen_effects = forms.CharField(required=False, widget=forms.HiddenInput)
    verb = "change it"

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        """By default those of the settings of a center or a room that is stored already."""
        if self.instance._state.adding:
            return None
        planned = copy(self.instance)
        for name in (changed := cleaned.keys() & set(self.changed_data)):
            setattr(planned, name, cleaned[name])
        return find_effects_of_settings(planned, changed)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        effects = None if self.errors else self.find_effects(cleaned)
        if effects is not None and effects.key != cleaned.get("seen_effects"):
            assert isinstance(self.data, MultiValueDict)
            self.data = self.data.copy()
            self.data[self.add_prefix("seen_effects")] = effects.key
            text = "{} Nothing is saved yet: save again to {}.{}"
            html = format_html(text, effects.html, self.verb, self["seen_effects"])
            self.add_error(None, html)
        return cleaned


class ClosureForm(SeenEffectsForm):
    """A closure. A day without a time is a whole day."""

    verb = "close"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, time in (("starts_at", "00:00"), ("ends_at", "24:00")):
            if name in self.fields:
                widget: Any = self.fields[name].widget
                widget.empty_time = time
                widget.widgets[1].attrs["placeholder"] = "all day"

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        if not AFFECTING_FIELDS & set(self.changed_data):
            return None
        closure = Closure(
            center=cleaned.get("center") or self.instance.center,
            **{name: cleaned.get(name) for name in ("room", "starts_at", "ends_at")},
        )
        return find_effects([closure])


@admin.register(models.Closure)
class ClosureAdmin(
    ImportExportAdminMixin, CenterSearchMixin, CenterScopedMixin, LocalTimeMixin, ModelAdmin
):
    """Closures. Times are in the local time of their center."""

    resource_class = ClosureResource
    form = ClosureForm
    fields = ("center", "room", "starts_at", "ends_at", "reason")
    list_display = ("reason_display", "center", "room", "local_start", "local_end")
    list_filter = (("starts_at", DateRangeFilter), ("room", admin.EmptyFieldListFilter))
    list_filter_submit = True
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

    def response_post_save_add(
        self, request: HttpRequest, obj: models.Closure
    ) -> HttpResponseRedirect:
        """Lead to the page that resolves what the closure affects, if there is anything."""
        effects = find_effects([obj])
        can_resolve = roles.has_permission(request.user, roles.CHANGE_RESERVATION, obj.center_id)
        if effects and effects.url and can_resolve:
            return HttpResponseRedirect(effects.url)
        return super().response_post_save_add(request, obj)

    # Django leads to the list after both.
    response_post_save_change = response_post_save_add

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
