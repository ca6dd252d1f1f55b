"""The filter of a list by its first and last day."""

import datetime as dt
from typing import Any

from django import forms
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateFilter

from accounts.admin.center_scope import get_shared_time_zone
from roombook.backoffice.widgets import DateTextInput, DayField, parse_day


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

    def get_zone(self, request: HttpRequest) -> dt.tzinfo:
        """The time zone of the selected center, or that of all of the user's centers."""
        page = self.model_admin
        return get_shared_time_zone(
            request,
            page.get_permission_name("view"),
            center_parameter=f"{getattr(page, 'center_path', '')}__id__exact",
        )

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, last = (
            parse_day(self.used_parameters.get(f"{self.field_path}_{end}"))
            for end in ("from", "to")
        )
        if not (first or last):
            return queryset
        end: dt.date | None = last and last + dt.timedelta(days=1)
        if isinstance(self.field, models.DateTimeField):
            zone = self.get_zone(request)
            first, end = (day and dt.datetime.combine(day, dt.time(), zone) for day in (first, end))
        if first:
            queryset = queryset.filter(**{f"{self.field_path}__gte": first})
        if end:
            queryset = queryset.filter(**{f"{self.field_path}__lt": end})
        return queryset
