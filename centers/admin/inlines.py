"""What belongs to a center, on its page: a tab each."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin.center_scope import InlineAtCenter
from centers import models
from centers.admin import forms
from centers.admin.common import OfTheCenter, preview
from centers.admin.rate_examples import brief
from roombook.backoffice.concurrent_edits import TypedOnly
from roombook.backoffice.model_admin import TabularInline


class TabOfCenter(OfTheCenter, InlineAtCenter, TabularInline):
    """Rows of a center."""

    form = TypedOnly
    tab = True
    show_count = True
    per_page = 25
    extra = 0


class OpeningHoursInline(InlineAtCenter, TabularInline):
    model = models.OpeningHours
    form = forms.SpanForm
    formset = forms.WeekFormSet
    template = "centers/week.html"
    tab = True
    extra = 0


class RateInline(TabOfCenter):
    model = models.Rate
    form = forms.RateForm
    fields = (
        *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
        *("setup_fee", "is_meant_free", "bookings_cost"),
    )
    readonly_fields = ("bookings_cost",)
    ordering = ("name", "pk")
    show_change_link = True

    @admin.display(description="4 h, 8 h, 2 days")
    def bookings_cost(self, rate: models.Rate) -> str:
        """What bookings cost; the page of the rate says why."""
        return brief(rate) or "-"


class MeetingRoomInline(TabOfCenter):
    model = models.MeetingRoom
    fields = (
        *("name", "resource_type", "capacity", "rate"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    choices = ("resource_type",)
    choices_of_center = ("rate",)
    ordering = ("name", "pk")
    show_change_link = True


class ServiceInline(TabOfCenter):
    model = models.Service
    fields = (
        *("name", "resource_type", "rate", "minimum_booking"),
        *("needs_duration", "needs_quantity", "bill_at_center", "is_active"),
    )
    choices = ("resource_type",)
    choices_of_center = ("rate",)
    show_change_link = True


class ClosureInline(TabOfCenter):
    """Closures to come; the list of closures has the past ones too."""

    model = models.Closure
    template = "centers/closures_tab.html"
    fields = ("starts_at", "ends_at", "reason", "room")
    choices_of_center = ("room",)
    hide_title = True
    ordering = ("starts_at", "pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Closure]:
        return super().get_queryset(request).filter(ends_at__gt=timezone.now())


class CenterImageInline(TabOfCenter):
    model = models.CenterImage
    fields = ("shown", "image", "position")
    readonly_fields = ("shown",)
    hide_title = True

    @admin.display(description="preview")
    def shown(self, image: models.CenterImage) -> str:
        return preview(image.thumbnail)


class LandmarkInline(TabOfCenter):
    model = models.Landmark
    fields = ("name", "type", "description")
    hide_title = True

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "description" and field is not None:
            field.widget.attrs["rows"] = 2
        return field
