"""The filters of lists by days: the first and the last one, or a period that is named."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter, RangeDateFilter

from roombook.backoffice.widgets import DateTextInput, DayField, parse_day

DAY = dt.timedelta(days=1)
# The first day, and the day after the last.
Days = tuple[dt.date | None, dt.date | None]


class DateRangeForm(forms.Form):
    def __init__(self, name: str, data: dict[str, str | None]) -> None:
        super().__init__(data)
        for end, label in (("from", "From"), ("to", "To")):
            widget = DateTextInput({"placeholder": f"{label} YYYY-MM-DD", "aria-label": label})
            self.fields[f"{name}_{end}"] = DayField(required=False, label=label, widget=widget)


class DateRangeFilter(RangeDateFilter):
    """By local days, from the first to the last.

    A list that cannot read a day shows nothing (`BackofficeChangeList`). The theme's own filter
    reads other formats than forms do, and leaves the last day out.
    """

    form_class = DateRangeForm

    def __init__(
        self,
        field: models.Field,
        request: HttpRequest,
        params: Any,
        model: type[models.Model],
        model_admin: Any,
        field_path: str,
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.model_admin = model_admin

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, last = (
            parse_day(self.used_parameters.get(f"{self.field_path}_{end}"))
            for end in ("from", "to")
        )
        end = last and last + DAY
        is_time = isinstance(self.field, models.DateTimeField)
        has_days = is_time and (first or end)
        zone = self.model_admin.get_list_time_zone(request) if has_days else None
        return filter_days(queryset, self.field_path, first, end, zone)


class PeriodFilter(DropdownFilter):
    """By a period of local days that is counted from today."""

    field_path: str
    # By value: its label, and from today the first day and the day after the last.
    periods: Mapping[str, tuple[str, Callable[[dt.date], Days]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self.model_admin = model_admin
        return [(value, label) for value, (label, _) in self.periods.items()]

    def get_selected(self, request: HttpRequest) -> str:
        return str(self.value())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        selected = self.get_selected(request)
        if selected not in self.periods:
            return queryset
        zone = self.model_admin.get_list_time_zone(request)
        _, get_days = self.periods[selected]
        days = get_days(timezone.now().astimezone(zone).date())
        return filter_days(queryset, self.field_path, *days, zone)


def filter_days(
    queryset: QuerySet[Any],
    path: str,
    first: dt.date | None,
    end: dt.date | None,
    zone: dt.tzinfo | None,
) -> QuerySet[Any]:
    """Limit rows to the days from the first up to, but not including, the end.

    With a time zone, the column has times.
    """
    for lookup, day in (("gte", first), ("lt", end)):
        if day:
            value = dt.datetime.combine(day, dt.time(), zone) if zone else day
            queryset = queryset.filter(**{f"{path}__{lookup}": value})
    return queryset
