"""The page of a center, with a tab for each kind of its rows, and the list of centers."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Model
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from accounts.admin.center_scope import CenterScopedMixin
from centers import hours, models
from centers.admin.center_forms import CenterEditForm, CoordinatesForm
from centers.admin.common import TimelineLinkMixin, get_center_zone
from centers.admin.inlines import (
    CenterImageInline,
    ClosureInline,
    LandmarkInline,
    MeetingRoomInline,
    OpeningHoursInline,
    RateInline,
    ServiceInline,
)
from centers.admin.rate_examples import find_price_warnings
from centers.closure_effects import time_zone_changed
from centers.models.schedule import closure_saved
from centers.resources.centers import CenterResource
from centers.search.words import split_words
from roombook.backoffice.model_admin import (
    LocalTimeMixin,
    ModelAdmin,
    PageAnnotationsMixin,
)
from roombook.errors import SlotUnavailable
from roombook.imports.admin import ImportExportAdminMixin


@admin.register(models.Center)
class CenterAdmin(
    ImportExportAdminMixin,
    TimelineLinkMixin,
    CenterScopedMixin,
    PageAnnotationsMixin,
    LocalTimeMixin,
    ModelAdmin,
):
    resource_class = CenterResource
    form = CenterEditForm
    center_path = ""
    timeline_label = "Timeline"
    list_display = ("name", "city", "state", "country", "room_count", "is_active", "rank")
    list_filter = (
        *("is_active", "is_after_hours_support_enabled", "is_new_location", "is_new_low_price"),
    )
    # Shows the search box. get_search_results decides what is found.
    search_fields = ("search_text",)
    search_help_text = "Name, address, country, neighborhood or landmark, as customers search"
    ordering = ("rank", "name_folded", "pk")
    sortable_by = ()
    autocomplete_fields = ("neighborhood",)
    readonly_fields = ("opening_hours_summary", "searchable_text")
    inlines = (
        *(OpeningHoursInline, RateInline, MeetingRoomInline, ServiceInline),
        *(ClosureInline, CenterImageInline, LandmarkInline),
    )
    fieldsets = (
        (None, {"fields": ("name", ("is_active", "rank"), ("neighborhood", "tax_rate"))}),
        (
            "Address",
            {
                "fields": (
                    *("street1", ("street2", "street3"), ("city", "state")),
                    *(("postal_code", "country"), ("latitude", "longitude")),
                    ("time_zone_id", "keeps_instants"),
                ),
            },
        ),
        (
            "For customers",
            {
                "fields": (
                    *("promo_text", "parking_information"),
                    *(("is_new_location", "is_new_low_price"), "is_after_hours_support_enabled"),
                    "opening_hours_summary",
                )
            },
        ),
        ("Search", {"fields": ("searchable_text",), "classes": ("collapse",)}),
    )

    class Media:
        css = {"all": ["centers/centers.css"]}
        js = ["centers/week.js", "centers/place.js"]

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return queryset.containing_words(split_words(search_term)), False

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        active = models.MeetingRoom.objects.filter(center__in=rows, is_active=True)
        counts = dict(active.values_list("center").annotate(Count("pk")).order_by())
        for center in rows:
            center.active_rooms = counts.get(center.pk, 0)

    result_icon = "apartment"

    def get_result_description(self, row: models.Center) -> str:
        return f"Center, {row.city}"

    @admin.display(description="active rooms")
    def room_count(self, center: Any) -> int:
        return center.active_rooms

    # The time zone of the coordinates that are being entered

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.time_zone_view)
        return [path("time-zone/", view, name="centers_time_zone"), *super().get_urls()]

    def time_zone_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        form = CoordinatesForm(request.GET)
        if not form.is_valid():
            message = " ".join(str(error) for errors in form.errors.values() for error in errors)
            return JsonResponse({"timeZone": "", "message": message})
        time_zone = form.find_time_zone()
        message = "" if time_zone else "The time zone of these coordinates is unknown."
        return JsonResponse({"timeZone": time_zone, "message": message})

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> type[ModelForm]:
        form = super().get_form(request, *args, **kwargs)
        if "latitude" in form.base_fields:
            url = reverse("admin:centers_time_zone")
            form.base_fields["latitude"].widget.attrs["data-time-zone-url"] = url
        if "parking_information" in form.base_fields:
            form.base_fields["parking_information"].widget.attrs["rows"] = 3
        return form

    # The page

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> list[type]:
        """Rooms, services and closures are added after the first save."""
        hidden = set() if obj else {MeetingRoomInline, ServiceInline, ClosureInline}
        return [inline for inline in self.inlines if inline not in hidden]

    def get_timeline_url(self, obj: models.Center) -> str:
        return f"{reverse('admin:reservations_timeline')}?center={obj.pk}"

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        return get_center_zone(object_id)

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm,
        formset: BaseInlineFormSet,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is models.Rate:
            for rate in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
                for warning in find_price_warnings(rate):
                    messages.warning(request, f"{rate.name}: {warning}")
        if formset.model is models.Closure:
            for closure in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
                closure_saved.send(models.Closure, closure=closure, request=request)

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: Any,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_model(request, obj, form, change)
        if form.former_zone not in {"", obj.time_zone_id}:
            time_zone_changed.send(
                models.Center,
                center=obj,
                former_zone=form.former_zone,
                keeps_instants=bool(form.cleaned_data["keeps_instants"]),
                by=request.user,
                now=timezone.now(),
            )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except SlotUnavailable as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())

    @admin.display(description="opening hours")
    def opening_hours_summary(self, center: models.Center) -> str:
        return (hours.format_week(center.opening_hours.all()) if center.pk else "") or "-"

    @admin.display(description="search text")
    def searchable_text(self, center: models.Center) -> str:
        return center.search_text or "-"
