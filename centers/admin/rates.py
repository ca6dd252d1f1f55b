"""Rates: prices are edited in the list, and on a page that shows what bookings cost."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.admin.common import CENTER_ORDERING, CenterSearchMixin
from centers.admin.rate_examples import calculate_examples, find_price_warnings
from centers.admin.rate_forms import RateForm, RateListForm, RatePricesForm
from centers.models.room import is_offered
from centers.resources.inventory import RateResource
from roombook.backoffice.model_admin import ModelAdmin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin


@admin.register(models.Rate)
class RateAdmin(ImportExportAdminMixin, CenterSearchMixin, CenterScopedMixin, ModelAdmin):
    resource_class = RateResource
    form = RateForm
    fields = (
        *("center", "name", ("is_flat_rate", "flat_rate"), ("hourly", "half_day", "full_day")),
        *(("setup_fee", "bill_in_blocks"), "description", "is_zero_price_allowed"),
    )
    list_display = (
        *("name", "center", "hourly", "half_day", "full_day", "flat_rate", "setup_fee"),
        "bill_in_blocks",
    )
    list_editable = ("hourly", "half_day", "full_day", "flat_rate", "setup_fee", "bill_in_blocks")
    list_filter = ("is_flat_rate", "bill_in_blocks")
    list_select_related = ("center",)
    search_fields = ("name",)
    search_help_text = "Name of the rate; name, address or neighborhood of its center"
    ordering = CENTER_ORDERING
    sortable_by = ()
    # Rows with inputs are slow to render.
    list_per_page = 25
    autocomplete_fields = ("center",)
    compressed_fields = False
    change_form_outer_after_template = "centers/rate_examples.html"

    class Media:
        css = {"all": ["centers/centers.css"]}

    def get_changelist_form(self, request: HttpRequest, **kwargs: object) -> type[ModelForm]:
        return super().get_changelist_form(request, form=RateListForm, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any) -> None:
        super().save_model(request, obj, *args, **kwargs)
        for warning in find_price_warnings(obj):
            messages.warning(request, f"{obj.name}: {warning}")

    # Examples

    def get_urls(self) -> list[URLPattern]:
        view = require_POST(self.admin_site.admin_view(self.examples_view))
        choices_view = self.admin_site.admin_view(self.choices_view)
        return [
            path("examples/", view, name="centers_rate_examples"),
            path("choices/", choices_view, name="centers_rate_choices"),
            *super().get_urls(),
        ]

    def choices_view(self, request: HttpRequest) -> HttpResponse:
        """The rates of a center, for the page of a room or a service (rate_choices.js)."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        center = parse_id(request.GET.get("center"))
        rates = self.get_queryset(request).filter(center=center).order_by("name")
        if (relation := request.GET.get("for")) in {"rooms", "services"}:
            rates = rates.filter(is_offered(relation)).distinct()
        return JsonResponse({"choices": [(rate.pk, str(rate)) for rate in rates]})

    def examples_view(self, request: HttpRequest) -> HttpResponse:
        """What bookings would cost under the prices that are being entered. Saves nothing."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        context = get_examples_context(RatePricesForm(request.POST))
        return TemplateResponse(request, "centers/examples.html", context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        form = context["adminform"].form
        if form.is_bound:
            context |= get_examples_context(RatePricesForm(request.POST))
        else:
            rate = form.instance
            context |= {
                "examples": calculate_examples(rate),
                "warnings": find_price_warnings(rate),
                "setup_fee": rate.setup_fee,
            }
        context["examples_url"] = reverse("admin:centers_rate_examples")
        return super().render_change_form(request, context, *args, **kwargs)


def get_examples_context(form: RatePricesForm) -> dict[str, Any]:
    """The examples for the entered prices, or the problems with these."""
    problems = [
        (form.fields[name].label or name if name in form.fields else "Prices", message)
        for name, errors in form.errors.items()
        # The prices do not depend on the texts.
        if name not in ("name", "description")
        for message in errors
    ]
    rate = form.instance
    return {
        "problems": problems,
        "examples": [] if problems else calculate_examples(rate),
        "warnings": [] if problems else find_price_warnings(rate),
        "setup_fee": rate.setup_fee,
    }
