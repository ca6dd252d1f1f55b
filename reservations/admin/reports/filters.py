"""What a report is asked for, as its address says it: an address that can be sent on."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import admin
from django.http import QueryDict

from accounts import roles
from accounts.models import User
from centers.models import Center, MeetingRoom, ResourceType
from reservations.admin.reports.periods import DAY, ReportPeriod
from reservations.admin.reports.selection import ReportSelection
from roombook.backoffice.model_admin import (
    AutocompleteMultipleField,
    AutocompleteMultipleWidget,
    NativeDateInput,
)

SEE = "reservations.see_reports"
# Longer periods are asked for in parts, so that one report stays a matter of seconds.
MAX_DAYS = 400
MAX_CHOICES = 200
YEARS = range(2000, 2101)


class ReportDateInput(NativeDateInput):
    """A box for a day, left empty where the address holds none: browsers complain otherwise."""

    def format_value(self, value: Any) -> str | None:
        day = _parse_date(value) if isinstance(value, str) else value
        return super().format_value(day)


class OptionalMultiSelect(AutocompleteMultipleWidget):
    """A box for several rows, of which none means all."""

    def build_attrs(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().build_attrs(*args, **kwargs), "data-placeholder": "All"}


class ReportFilters(forms.Form):
    """Everything has a default: the month that it is, at all centers of whoever asks."""

    since = forms.DateField(label="From", widget=ReportDateInput)
    until = forms.DateField(label="To", widget=ReportDateInput)
    center = AutocompleteMultipleField(
        Center.objects.none(),
        max_rows=MAX_CHOICES,
        required=False,
        label="Centers",
        error_messages={
            "invalid_choice": "There is no center %(value)s whose reports you may see."
        },
    )
    type = AutocompleteMultipleField(
        ResourceType.objects.filter(is_service=False).order_by("position", "name"),
        max_rows=MAX_CHOICES,
        required=False,
        label="Room types",
        error_messages={"invalid_choice": "There is no room type %(value)s."},
    )

    def __init__(self, data: QueryDict, *, user: User, today: dt.date) -> None:
        super().__init__(_fill_in_dates(data, today))
        self.user, self.today = user, today
        center: Any = self.fields["center"]
        center.queryset = Center.objects.filter(roles.get_center_filter(user, SEE, ""))
        # Any column that points to such a row: its box finds them by typing.
        for name, column in (("center", "center"), ("type", "resource_type")):
            box: Any = self.fields[name]
            box.widget = OptionalMultiSelect(MeetingRoom._meta.get_field(column), admin.site)
            box.widget.choices = box.choices

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        since, until = cleaned["since"], cleaned["until"]
        if since > until:
            self.add_error("until", "The period ends before it begins.")
        elif since.year not in YEARS or until.year not in YEARS:
            self.add_error("since", f"Choose days from {YEARS[0]} to {YEARS[-1]}.")
        elif (until - since).days >= MAX_DAYS:
            self.add_error("until", f"A report covers {MAX_DAYS} days at most.")
        else:
            cleaned["period"] = ReportPeriod(since, until)
        return cleaned

    @property
    def selection(self) -> ReportSelection:
        """What is asked for, never more than may be seen."""
        chosen = frozenset(center.pk for center in self.cleaned_data["center"])
        types = frozenset(each.pk for each in self.cleaned_data["type"])
        return ReportSelection(
            self.cleaned_data["period"],
            chosen or roles.get_permitted_centers(self.user, SEE),
            types or None,
        )

    @property
    def about(self) -> list[tuple[str, str]]:
        """The selection in words."""
        period = self.cleaned_data["period"]
        centers = ", ".join(str(each) for each in self.cleaned_data["center"])
        types = ", ".join(str(each) for each in self.cleaned_data["type"])
        return [
            ("From", f"{period.first}"),
            ("To", f"{period.last}"),
            ("Centers", centers or "All that you may see"),
            ("Room types", types or "All"),
        ]

    def shortcuts(self) -> list[tuple[str, ReportPeriod]]:
        """Periods that are often wanted."""
        month = ReportPeriod.month_of(self.today)
        last = ReportPeriod.month_of(month.first - DAY)
        return [
            ("This month", month),
            ("Last month", last),
            ("Last 30 days", ReportPeriod(self.today - 30 * DAY, self.today - DAY)),
            ("Last 12 months", ReportPeriod(_subtract_months(month.first, 12), last.last)),
            ("Next month", ReportPeriod.month_of(month.last + DAY)),
        ]


def _fill_in_dates(data: QueryDict, today: dt.date) -> QueryDict:
    """What was asked for, with the days that were left out: those of the month."""
    data = data.copy()
    if not data.get("since"):
        until = _parse_date(data.get("until")) or today
        data["since"] = until.replace(day=1).isoformat()
    if not data.get("until") and (since := _parse_date(data.get("since"))):
        data["until"] = ReportPeriod.month_of(since).last.isoformat()
    return data


def _parse_date(text: str | None) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text or "")
    except ValueError:
        return None


def _subtract_months(first: dt.date, count: int) -> dt.date:
    months = first.year * 12 + first.month - 1 - count
    return dt.date(months // 12, months % 12 + 1, 1)
