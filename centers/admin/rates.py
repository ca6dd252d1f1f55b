"""Rates: prices are edited in the list, and on a page that shows what bookings cost, and why."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts import roles
from centers import models, rates
from centers.admin.common import CENTER_ORDERING, CenterSearchMixin, FixedCenterMixin
from centers.admin.price_lists import (
    PriceListInline,
    ZeroPriceForm,
    build_weeks,
    read_price_lists,
)
from centers.models.room import is_offered
from centers.price_lists import PriceListLike, find_next_day
from centers.rates import PRICE_FIELDS
from centers.resources import RateResource
from centers.span import Span
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin
from roombook.money import ZERO, format_amount, round_amount

# A working day and a time zone without clock changes.
EXAMPLE_START = datetime(2027, 3, 1, 9, tzinfo=UTC)
EXAMPLE_DURATIONS = {
    "1 hour": timedelta(hours=1),
    "2.5 hours": timedelta(hours=2, minutes=30),
    "4 hours": timedelta(hours=4),
    "5 hours": timedelta(hours=5),
    "8 hours": timedelta(hours=8),
    "2 days, 9:00 to 17:00 of the next": timedelta(days=1, hours=8),
}
# Half before and half within the prices of a special list.
SPECIAL_EXAMPLE = timedelta(hours=4)
SUMMARY_DURATIONS = {timedelta(hours=4), timedelta(hours=8), timedelta(days=1, hours=8)}


@dataclass(frozen=True, slots=True)
class RateExample:
    """An example booking: its duration and its price."""

    duration: timedelta
    duration_text: str
    price: rates.RoomPrice
    setup_fee: Decimal

    @property
    def total(self) -> Decimal:
        return self.price.total + self.setup_fee

    @property
    def room_text(self) -> str:
        return format_amount(self.price.total)

    @property
    def total_text(self) -> str:
        return format_amount(self.total)

    @property
    def reasons(self) -> list[str]:
        """Why it costs that, day by day."""
        if self.price.is_flat:
            return ["Charged once, regardless of the duration."]
        if len(self.price.days) == 1:
            return [self.price.days[0].explanation]
        return [
            f"Day {number}, {rates.format_hours(day.billable_hours)}: {day.explanation}"
            for number, day in enumerate(self.price.days, start=1)
        ]


def calculate_examples(rate: rates.RateLike, *, today: date) -> list[RateExample]:
    """The examples for a rate, and one for each special list; none if it has no price."""
    if not rates.is_usable(rate):
        return []
    setup_fee = round_amount(rate.setup_fee or ZERO)
    spans = {
        text: Span(EXAMPLE_START, EXAMPLE_START + duration)
        for text, duration in EXAMPLE_DURATIONS.items()
    }
    for special in rate.special_prices:
        if start := _find_example_of(special, today):
            end = start + SPECIAL_EXAMPLE
            spans[f"{start:%a %Y-%m-%d, %H:%M} to {end:%H:%M}"] = Span(start, end)
    return [
        RateExample(span.duration, text, rates.price_room(rate, span, UTC), setup_fee)
        for text, span in spans.items()
    ]


def _find_example_of(special: PriceListLike, today: date) -> datetime | None:
    """The start of a booking on the next day of a list, if possible two hours before its prices."""
    day = find_next_day(special, today)
    if day is None:
        return None
    starts = datetime.combine(day, special.starts, UTC)
    return max(starts - SPECIAL_EXAMPLE / 2, datetime.combine(day, time(), UTC))


def find_price_warnings(rate: rates.RateLike) -> list[str]:
    """Prices of a shorter time that are above the price of a longer one: probably a mistake."""
    if rate.is_flat_rate:
        return []
    prices = [
        ("An hour", "an hour", rate.hourly),
        ("Half a day", "half a day", rate.half_day),
        ("A full day", "a full day", rate.full_day),
    ]
    offered = [(subject, name, price) for subject, name, price in prices if price is not None]
    return [
        f"{subject} ({format_amount(shorter)}) costs more than {name} ({format_amount(longer)})."
        for (subject, _, shorter), (_, name, longer) in pairwise(offered)
        if shorter > longer
    ]


def summarize_examples(rate: rates.RateLike) -> str:
    """The prices of three examples on one line."""
    examples = calculate_examples(rate, today=EXAMPLE_START.date())[: len(EXAMPLE_DURATIONS)]
    return " · ".join(each.total_text for each in examples if each.duration in SUMMARY_DURATIONS)


class RatePricesForm(ChangedFieldsForm):
    """The prices of a rate as they were entered."""

    class Meta:
        model = models.Rate
        fields = (
            *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
            *("setup_fee", "bill_in_blocks", "description"),
        )


class RateForm(RatePricesForm, ZeroPriceForm):
    """A rate on its own page, on that of its center, or in the list."""

    price_fields = (*PRICE_FIELDS[False], *PRICE_FIELDS[True])


@admin.register(models.Rate)
class RateAdmin(ImportExportAdminMixin, CenterSearchMixin, FixedCenterMixin, ModelAdmin):
    resource_class = RateResource
    form = RateForm
    inlines = (PriceListInline,)
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
        """The rates or terms of a center, for the page of a room or service (rate_choices.js)."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        center = parse_id(request.GET.get("center"))
        rows = self.get_queryset(request).filter(center=center)
        if (relation := request.GET.get("for")) in {"rooms", "services"}:
            rows = rows.filter(is_offered(relation)).distinct()
        elif relation == "terms":
            visible = roles.get_center_filter(request.user, "centers.view_terms", "center")
            rows = models.Terms.objects.filter(visible, center=center)
        return JsonResponse({"choices": [(row.pk, str(row)) for row in rows.order_by("name")]})

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
        context |= get_examples_context(RatePricesForm(request.POST) if form.is_bound else form)
        context["examples_url"] = reverse("admin:centers_rate_examples")
        return super().render_change_form(request, context, *args, **kwargs)


def get_examples_context(form: ChangedFieldsForm) -> dict[str, Any]:
    """The examples for the entered prices and special lists, or the problems with these."""
    problems = [
        (form.fields[name].label or name if name in form.fields else "Prices", message)
        for name, errors in form.errors.items()
        # The prices do not depend on the texts.
        if name not in ("name", "description")
        for message in errors
    ]
    rate = form.instance
    if form.is_bound and not rate.is_flat_rate:
        rate.special_prices, problems_of_lists = read_price_lists(form.data)
        problems += problems_of_lists
    today = timezone.localdate()
    return {
        "problems": problems,
        "examples": [] if problems else calculate_examples(rate, today=today),
        "weeks": [] if problems else build_weeks(rate, today=today),
        "warnings": [] if problems else find_price_warnings(rate),
        "setup_fee": rate.setup_fee,
    }
