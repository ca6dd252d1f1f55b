"""The page of a center."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import Count, Model, Q, QuerySet
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest

from centers import hours, models
from centers.admin.common import zone_of_center
from centers.admin.inlines import (
    CenterImageInline,
    ClosureInline,
    LandmarkInline,
    MeetingRoomInline,
    OpeningHoursInline,
    RateInline,
    ServiceInline,
)
from centers.search import words_of
from centers.signals import closure_saved
from roombook.admin import CenterClock, ModelAdmin


@admin.register(models.Center)
class CenterAdmin(CenterClock, ModelAdmin):
    """A center with all that belongs to it; rooms, services, closures come after its first save."""

    list_display = ("name", "city", "state", "country", "room_count", "is_active", "rank")
    list_filter = (
        *("is_active", "is_after_hours_support_enabled", "is_new_location", "is_new_low_price"),
        "country",
    )
    list_select_related = ("neighborhood",)
    # Not empty, so that the search box is there; what it finds is for get_search_results to say.
    search_fields = ("search_text",)
    search_help_text = "Name, address, neighborhood or landmark, as customers search."
    ordering = ("rank", "name", "pk")
    autocomplete_fields = ("neighborhood",)
    readonly_fields = ("hours_told", "searched")
    inlines = (
        *(OpeningHoursInline, RateInline, MeetingRoomInline, ServiceInline),
        *(ClosureInline, CenterImageInline, LandmarkInline),
    )
    fieldsets = (
        (None, {"fields": ("name", "is_active", "rank", "neighborhood", "tax_rate")}),
        (
            "Address",
            {
                "fields": (
                    *("street1", "street2", "street3", "city", "state", "postal_code", "country"),
                    *("latitude", "longitude", "time_zone_id"),
                ),
                "description": "Without a time zone it is found by latitude and longitude.",
            },
        ),
        (
            "For customers",
            {
                "fields": (
                    *("promo_text", "parking_information", "is_new_location", "is_new_low_price"),
                    *("is_after_hours_support_enabled", "hours_told"),
                )
            },
        ),
        ("Search", {"fields": ("searched",), "classes": ("collapse",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Center]:
        active = Count("rooms", filter=Q(rooms__is_active=True))
        return super().get_queryset(request).annotate(active_rooms=active)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return queryset.containing(words_of(search_term)), False

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> list[type]:
        after_first_save = {MeetingRoomInline, ServiceInline, ClosureInline}
        return [each for each in self.inlines if obj or each not in after_first_save]

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        return zone_of_center(object_id)

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm,
        formset: BaseInlineFormSet,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is models.Closure:
            for closure in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
                closure_saved.send(models.Closure, closure=closure, request=request)

    @admin.display(description="active rooms", ordering="active_rooms")
    def room_count(self, center: Any) -> int:
        return center.active_rooms

    @admin.display(description="opening hours as shown")
    def hours_told(self, center: models.Center) -> str:
        return (hours.concatenated(center.opening_hours.all()) if center.pk else "") or "-"

    @admin.display(description="text that searches read")
    def searched(self, center: models.Center) -> str:
        return center.search_text or "-"
