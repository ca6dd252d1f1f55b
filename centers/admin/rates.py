"""Rates: their prices in a list, and on a page with what bookings cost under them."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.admin import forms
from centers.admin.common import CENTER_ORDERING, search_rows_and_centers
from centers.admin.rate_examples import calculate_examples
from centers.resources.inventory import RateResource
from roombook.backoffice.model_admin import ModelAdmin, SaveChangedFieldsMixin
from roombook.imports.admin import ImportExportAdminMixin


@admin.register(models.Rate)
class RateAdmin(ImportExportAdminMixin, CenterScopedMixin, SaveChangedFieldsMixin, ModelAdmin):
    """Rates. Prices are typed into the list, too; each writes only what was typed."""

    resource_class = RateResource
    form = forms.RateForm
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
    search_help_text = "Name of the rate, or name, address, neighborhood of its center."
    ordering = CENTER_ORDERING
    sortable_by = ()
    # Rows of boxes take their time to draw.
    list_per_page = 25
    autocomplete_fields = ("center",)
    compressed_fields = False
    change_form_outer_after_template = "centers/rate_examples.html"

    class Media:
        css = {"all": ["centers/centers.css"]}

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_rows_and_centers(queryset, search_term), False

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> type[ModelForm]:
        return super().get_changelist_form(request, form=forms.RateListForm, **kwargs)

    # Examples

    def get_urls(self) -> list[URLPattern]:
        view = require_POST(self.admin_site.admin_view(self.examples_view))
        return [path("examples/", view, name="centers_rate_examples"), *super().get_urls()]

    def examples_view(self, request: HttpRequest) -> HttpResponse:
        """What the prices that are typed just now would cost; nothing is saved."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return TemplateResponse(
            request,
            "centers/examples.html",
            get_examples_context(forms.RatePricesForm(request.POST)),
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        form = context["adminform"].form
        if form.is_bound:
            context |= get_examples_context(forms.RatePricesForm(request.POST))
        else:
            context |= {
                "examples": calculate_examples(form.instance),
                "setup_fee": form.instance.setup_fee,
            }
        context["examples_url"] = reverse("admin:centers_rate_examples")
        return super().render_change_form(request, context, *args, **kwargs)


def get_examples_context(form: forms.RatePricesForm) -> dict[str, Any]:
    """What the examples show of prices as typed, or what is wrong with them."""
    problems = [
        (form.fields[name].label or name if name in form.fields else "Prices", words)
        for name, errors in form.errors.items()
        # Of the name and the words for customers the prices do not depend.
        if name not in ("name", "description")
        for words in errors
    ]
    rate = form.instance
    return {
        "problems": problems,
        "examples": [] if problems else calculate_examples(rate),
        "setup_fee": rate.setup_fee,
    }
