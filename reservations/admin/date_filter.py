"""The filter of the reservation list by the day of the start."""

import datetime as dt

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from centers.models import Center
from centers.span import get_local_midnight
from roombook.ids import parse_id

# The query parameter of the list's filter by center.
CENTER_PARAMETER = "room__center__id__exact"
# By value of the filter: its label, the first day counted from today, and the day after the last.
RANGES: dict[str, tuple[str, int | None, int]] = {
    "today": ("Today", 0, 1),
    "tomorrow": ("Tomorrow", 1, 2),
    "week": ("Next 7 days", 0, 7),
    "past": ("Past", None, 0),
}


class StartDateFilter(DropdownFilter):
    """By the day on which a reservation starts.

    In the local time of the center if the list is filtered by center, else in UTC, because the days
    of several centers do not begin at the same time.
    """

    title = "start"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(value, label) for value, (label, _, _) in RANGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() not in RANGES:
            return queryset
        _, first, end = RANGES[self.value()]
        pk = parse_id(request.GET.get(CENTER_PARAMETER)) or 0
        center = Center.objects.filter(pk=pk).first()
        zone = center.zone if center else dt.UTC
        today = timezone.now().astimezone(zone).date()
        if first is not None:
            first_day = today + dt.timedelta(days=first)
            queryset = queryset.filter(start__gte=get_local_midnight(first_day, zone))
        end_day = today + dt.timedelta(days=end)
        return queryset.filter(start__lt=get_local_midnight(end_day, zone))
