"""The filter form of the reports, which is read from the query of the URL."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import ForeignKey, Model, QuerySet
from django.http import QueryDict

from accounts import roles
from accounts.models import User
from centers.models import Center, MeetingRoom, ResourceType
from reservations.local_days import DAY, LocalDays
from reservations.reports.selection import ReportSelection
from roombook.backoffice.widgets import (
    AutocompleteMultipleField,
    AutocompleteMultipleWidget,
    DayField,
    parse_day,
)
from roombook.dates import add_months

# Limits that keep a report within a few seconds.
MAX_DAYS = 400
MAX_CHOICES = 200


def _build_choice(
    queryset: QuerySet[Model], key: ForeignKey, *, label: str, error: str
) -> AutocompleteMultipleField:
    """Several rows; none means all. The widget needs a foreign key to their model, any one does."""
    return AutocompleteMultipleField(
        queryset,
        max_rows=MAX_CHOICES,
        required=False,
        label=label,
        widget=AutocompleteMultipleWidget(key, admin.site, {"data-placeholder": "All"}),
        error_messages={"invalid_choice": error},
    )


class ReportFilters(forms.Form):
    """The period and the centers. The default is the current month at all permitted centers."""

    since = DayField(label="From")
    until = DayField(label="To")
    center = _build_choice(
        Center.objects.none(),
        MeetingRoom._meta.get_field("center"),
        label="Centers",
        error="There is no center %(value)s whose reports you may see.",
    )
    type = _build_choice(
        ResourceType.objects.filter(is_service=False).order_by("position", "name"),
        MeetingRoom._meta.get_field("resource_type"),
        label="Room types",
        error="There is no room type %(value)s.",
    )

    def __init__(
        self, data: QueryDict, *, user: User, today: dt.date, has_room_types: bool
    ) -> None:
        super().__init__(_fill_in_dates(data, today))
        if not has_room_types:
            del self.fields["type"]
        self.user, self.today = user, today
        centers: Any = self.fields["center"]
        centers.queryset = Center.objects.filter(
            roles.get_center_filter(user, roles.SEE_REPORTS, "")
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        since, until = cleaned["since"], cleaned["until"]
        if since > until:
            self.add_error("until", "The period ends before it begins.")
        elif (until - since).days >= MAX_DAYS:
            self.add_error("until", f"A report covers at most {MAX_DAYS} days.")
        else:
            cleaned["period"] = LocalDays(since, until)
        return cleaned

    @property
    def selection(self) -> ReportSelection:
        """What the user selected, limited to the centers whose reports they may see."""
        centers = frozenset(center.pk for center in self.cleaned_data["center"])
        room_types = frozenset(each.pk for each in self.cleaned_data.get("type", ()))
        return ReportSelection(
            self.cleaned_data["period"],
            centers or roles.get_permitted_centers(self.user, roles.SEE_REPORTS),
            room_types or None,
        )

    def describe(self) -> list[tuple[str, str]]:
        """The selection in words, for exported files."""
        period = self.cleaned_data["period"]
        centers = ", ".join(map(str, self.cleaned_data["center"]))
        room_types = ", ".join(map(str, self.cleaned_data.get("type", ())))
        return [
            ("From", f"{period.first}"),
            ("To", f"{period.last}"),
            ("Centers", centers or "All that you may see"),
            ("Room types", room_types or "All"),
        ]

    def get_shortcuts(self) -> list[tuple[str, LocalDays]]:
        """Common periods."""
        month = LocalDays.from_month(self.today)
        last_month = LocalDays.from_month(month.first - DAY)
        a_year_ago = add_months(month.first, -12)
        return [
            ("This month", month),
            ("Last month", last_month),
            ("Last 30 days", LocalDays(self.today - 30 * DAY, self.today - DAY)),
            ("Last 12 months", LocalDays(a_year_ago, last_month.last)),
            ("Next month", LocalDays.from_month(month.last + DAY)),
        ]


def _fill_in_dates(data: QueryDict, today: dt.date) -> QueryDict:
    """Complete the query with the first day of the month, or the last one, if it has none."""
    data = data.copy()
    if not data.get("since"):
        until = parse_day(data.get("until")) or today
        data["since"] = until.replace(day=1).isoformat()
    if not data.get("until") and (since := parse_day(data.get("since"))):
        data["until"] = LocalDays.from_month(since).last.isoformat()
    return data
