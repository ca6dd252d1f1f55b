"""The tabs on the page of a center: its hours, rates, rooms, services, closures and pictures."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin.center_scope import CenterScopedInlineMixin
from centers import models
from centers.admin.closure_forms import CenterPartForm, ClosureForm
from centers.admin.common import CenterChoicesMixin, render_thumbnail
from centers.admin.opening_hours_forms import OpeningHoursForm, OpeningHoursFormSet
from centers.admin.rate_examples import summarize_examples
from centers.admin.rate_forms import RateForm
from roombook.backoffice.model_admin import TabularInline
from roombook.backoffice.pagination import PaginatedInlineFormSet
from roombook.texts import fold_name


class CenterTabInline(CenterChoicesMixin, CenterScopedInlineMixin, TabularInline):
    """Rows of a center."""

    tab = True
    show_count = True
    per_page = 25
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Who may only view a row reads the names of these, one query each, instead of choices.
        related = ("center", *self.choices, *self.center_choices)
        return super().get_queryset(request).select_related(*related)


class NamedRowsFormSet(PaginatedInlineFormSet):
    """Rows with names of their own: each form alone compares its name with stored rows only."""

    def clean(self) -> None:
        super().clean()
        names: set[str] = set()
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            name = "" if data.get("DELETE") else fold_name(data.get("name") or "")
            if name and name in names:
                form.add_error("name", "Another row here has this name.")
            names.add(name)


class OpeningHoursInline(CenterScopedInlineMixin, TabularInline):
    model = models.OpeningHours
    form = OpeningHoursForm
    formset = OpeningHoursFormSet
    template = "centers/week.html"
    tab = True
    extra = 0


class RateInline(CenterTabInline):
    model = models.Rate
    form = RateForm
    formset = NamedRowsFormSet
    fields = (
        *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
        *("setup_fee", "is_zero_price_allowed", "example_prices"),
    )
    readonly_fields = ("example_prices",)
    ordering = ("name", "pk")
    show_change_link = True

    @admin.display(description="4 h, 8 h, 2 days")
    def example_prices(self, rate: models.Rate) -> str:
        return summarize_examples(rate) or "-"


class MeetingRoomInline(CenterTabInline):
    model = models.MeetingRoom
    formset = NamedRowsFormSet
    form = CenterPartForm
    fields = (
        *("name", "resource_type", "capacity", "rate"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    choices = ("resource_type",)
    center_choices = ("rate",)
    ordering = ("name", "pk")
    show_change_link = True


class ServiceInline(CenterTabInline):
    model = models.Service
    formset = NamedRowsFormSet
    fields = (
        *("name", "resource_type", "rate", "minimum_booking"),
        *("needs_duration", "needs_quantity", "bill_at_center", "is_active"),
    )
    choices = ("resource_type",)
    center_choices = ("rate",)
    show_change_link = True


class ClosureInline(CenterTabInline):
    """Current and future closures. The list of closures has past ones too."""

    model = models.Closure
    template = "centers/closures_tab.html"
    form = ClosureForm
    fields = ("starts_at", "ends_at", "reason", "room")
    center_choices = ("room",)
    hide_title = True
    ordering = ("starts_at", "pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Closure]:
        return super().get_queryset(request).filter(ends_at__gt=timezone.now())


class CenterImageInline(CenterTabInline):
    model = models.CenterImage
    fields = ("preview", "image", "position")
    readonly_fields = ("preview",)
    hide_title = True

    @admin.display
    def preview(self, image: models.CenterImage) -> str:
        return render_thumbnail(image.thumbnail)


class LandmarkInline(CenterTabInline):
    model = models.Landmark
    fields = ("name", "type", "description")
    hide_title = True

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "description" and field is not None:
            field.widget.attrs["rows"] = 2
        return field
