"""The special price lists of a rate on its page, and a week of prices as a grid."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.admin.center_scope import CenterScopedInlineMixin, CenterScopedMixin
from centers import models, rates
from centers.admin.common import NamedRowsFormSet
from centers.hours import MIDNIGHT, STAFF_DAYS, WEEKDAYS
from centers.models.price_list import NOT_FLAT, lock_rates, update_rates
from centers.price_lists import (
    PriceListLike,
    find_at,
    find_next_day,
    find_overlap,
    holds_on,
)
from centers.resources import PriceListResource
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin, StackedInline
from roombook.backoffice.widgets import TimeTextInput
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin

PREFIX = "price_lists"
MAX_LISTS = 20
WEEKDAY_CHOICES = [*zip(WEEKDAYS, STAFF_DAYS, strict=True)]


class ZeroPriceForm(ChangedFieldsForm):
    """Prices, of which one that becomes 0 has to be confirmed."""

    price_fields: tuple[str, ...] = ()

    is_zero_price_allowed = forms.BooleanField(
        required=False,
        label="Allow a price of 0",
        help_text="Select this to make bookings free. To not offer a price, leave it empty.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        changed = [name for name in self.price_fields if name in self.changed_data]
        zero_prices = [name for name in changed if cleaned.get(name) == 0]
        if zero_prices and not cleaned.get("is_zero_price_allowed"):
            for name in zero_prices:
                # The list has no field to confirm it.
                text = "This makes bookings free. Leave it empty, or open the rate to confirm it."
                self.add_error(name, text)
            self.add_error("is_zero_price_allowed", "Select this if the price is really 0.")
        return cleaned


class WeekdaysFormField(forms.MultipleChoiceField):
    """Checkboxes for a WeekdaysField."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=WEEKDAY_CHOICES, required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value

    def clean(self, value: Any) -> str:
        return ",".join(super().clean(self.prepare_value(value)))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), self.prepare_value(data))


class PriceListForm(ZeroPriceForm):
    price_fields = ("hourly", "half_day", "full_day")

    weekdays = WeekdaysFormField(help_text="None for every day.")

    class Meta:
        model = models.PriceList
        fields: tuple[str, ...] = (
            *("name", "weekdays", "starts", "ends", "valid_from", "valid_until", "is_yearly"),
            *("hourly", "half_day", "full_day"),
        )
        # The preview, which the admin does not build, reads times as the page does: 18, and 24:00.
        widgets: ClassVar = {"starts": TimeTextInput, "ends": TimeTextInput}


class PriceListFormSet(NamedRowsFormSet):
    """The lists of a rate, of which only one holds at a time."""

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        if self.instance.pk:
            lock_rates([self.instance.pk])
        shown = [form.instance.pk for form in self.forms if form.instance.pk]
        lists = [*models.PriceList.objects.filter(rate=self.instance.pk).exclude(pk__in=shown)]
        lists += [
            form.instance
            for form in self.forms
            if form.cleaned_data.get("name") and not form.cleaned_data.get("DELETE")
        ]
        if lists and self.instance.is_flat_rate:
            # A new rate has no id yet, by which its lists would find it.
            raise ValidationError(NOT_FLAT)
        if overlap := find_overlap(lists, today=timezone.localdate()):
            raise ValidationError(overlap)


class PriceListInline(CenterScopedInlineMixin, StackedInline):
    model = models.PriceList
    form = PriceListForm
    formset = PriceListFormSet
    fields = (
        *("name", "weekdays", ("starts", "ends"), ("valid_from", "valid_until", "is_yearly")),
        *(("hourly", "half_day", "full_day"), "is_zero_price_allowed"),
    )
    verbose_name = "special price list"
    extra = 0
    max_num = MAX_LISTS
    ordering = ("pk",)


class PriceListPageForm(PriceListForm):
    """A list on its own page, compared with the others of its rate."""

    class Meta(PriceListForm.Meta):
        fields = ("rate", *PriceListForm.Meta.fields)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors and "rate" in cleaned:
            # The instance gets the values only after this.
            names = ("rate", *PriceListForm.Meta.fields)
            entered = models.PriceList(**{name: cleaned[name] for name in names})
            lock_rates([entered.rate_id])
            others = models.PriceList.objects.filter(rate=entered.rate).exclude(pk=self.instance.pk)
            if overlap := find_overlap([entered, *others], today=timezone.localdate()):
                self.add_error(None, overlap)
        return cleaned


@admin.register(models.PriceList)
class PriceListAdmin(ImportExportAdminMixin, CenterScopedMixin, ModelAdmin):
    resource_class = PriceListResource
    form = PriceListPageForm
    center_path = "rate__center"
    fields = ("rate", *PriceListInline.fields)
    list_display = (
        *("name", "rate_name", "center_name", "weekdays", "starts", "ends", "valid_from"),
        *("valid_until", "is_yearly", "hourly", "half_day", "full_day"),
    )
    list_select_related = ("rate__center",)
    search_fields = ("name", "rate__name", "rate__center__name")
    ordering = ("rate__center_id", "rate_id", "pk")
    autocomplete_fields = ("rate",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if change and "rate" in form.changed_data:
            update_rates([form.initial["rate"]])

    @admin.display(description="Rate")
    def rate_name(self, row: models.PriceList) -> str:
        return row.rate.name

    @admin.display(description="Center")
    def center_name(self, row: models.PriceList) -> str:
        return row.rate.center.name


def read_price_lists(
    data: Mapping[str, Any],
) -> tuple[list[models.PriceList], list[tuple[str, str]]]:
    """The lists that are being entered on the page of a rate, and by name what is wrong."""
    found: list[models.PriceList] = []
    problems: list[tuple[str, str]] = []
    total = data.get(f"{PREFIX}-TOTAL_FORMS", "")
    for number in range(min(parse_id(total) or 0, MAX_LISTS)):
        prefix = f"{PREFIX}-{number}"
        if data.get(f"{prefix}-DELETE") or not data.get(f"{prefix}-name"):
            continue
        form = PriceListForm(data, prefix=prefix)
        if form.is_valid():
            found.append(form.instance)
        else:
            problems += [
                (
                    data[f"{prefix}-name"],
                    f"{form[field].label}: {message}" if field in form.fields else str(message),
                )
                for field, messages in form.errors.items()
                for message in messages
            ]
    if overlap := find_overlap(found, today=timezone.localdate()):
        problems.append(("Special prices", overlap))
    return found, problems


# --- The grid -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PriceCell:
    """The prices at a time of a weekday. `number` is that of the list, 0 for standard prices."""

    number: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A time of day during which no price changes on any day of the week."""

    text: str
    cells: list[PriceCell]


@dataclass(frozen=True, slots=True)
class PriceWeek:
    days: list[dt.date]
    rows: list[PriceRow]

    @property
    def monday(self) -> dt.date:
        return self.days[0]


def build_weeks(rate: rates.RateLike, *, today: dt.date) -> list[PriceWeek]:
    """This week's prices, and those of the next week in which each list holds."""
    if not rate.special_prices:
        return []
    monday = _get_monday(today)
    found = (find_next_day(each, monday) for each in rate.special_prices)
    mondays = {monday, *(_get_monday(day) for day in found if day)}
    return [_build_week(rate, monday) for monday in sorted(mondays)]


def _get_monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())


def _build_week(rate: rates.RateLike, monday: dt.date) -> PriceWeek:
    days = [monday + dt.timedelta(days=number) for number in range(7)]
    by_day = [[each for each in rate.special_prices if holds_on(each, day)] for day in days]
    edges = {at for lists in by_day for each in lists for at in (each.starts, each.ends)}
    starts = sorted({MIDNIGHT} | edges)
    rows = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        cells = [_build_cell(rate, find_at(lists, start)) for lists in by_day]
        rows.append(PriceRow(f"{start:%H:%M} - {f'{end:%H:%M}' if end else '24:00'}", cells))
    return PriceWeek(days, rows)


def _build_cell(rate: rates.RateLike, special: PriceListLike | None) -> PriceCell:
    prices = rates.get_timed_prices(special or rate)
    text = str(prices[0]) if prices else "no price"
    if special is None:
        return PriceCell(0, "Standard", text)
    return PriceCell([*rate.special_prices].index(special) + 1, special.name, text)
