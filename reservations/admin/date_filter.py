"""The filter by day of the list of reservations."""

import datetime as dt
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from centers.models import Center
from centers.span import get_local_midnight
from roombook.ids import parse_id

# How the filter by center is told in the address.
CENTER = "room__center__id__exact"


class StartDateFilter(DropdownFilter):
    """By the day on which a reservation starts.

    The center's day where the list is cut to one, else in UTC, since the days of many centers begin
    at different moments.
    """

    title = "start"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("today", "Today"),
            ("tomorrow", "Tomorrow"),
            ("week", "Next 7 days"),
            ("past", "Past"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        spans = {"today": (0, 1), "tomorrow": (1, 2), "week": (0, 7), "past": (None, 0)}
        first, last = spans.get(self.value() or "", (None, None))
        if first is None and last is None:
            return queryset
        zone = _zone(request)
        today = timezone.now().astimezone(zone).date()
        if first is not None:
            queryset = queryset.filter(
                start__gte=get_local_midnight(today + dt.timedelta(days=first), zone)
            )
        return queryset.filter(
            start__lt=get_local_midnight(today + dt.timedelta(days=last or 0), zone)
        )


def _zone(request: HttpRequest) -> dt.tzinfo:
    center = Center.objects.filter(pk=parse_id(request.GET.get(CENTER)) or 0).first()
    return center.zone if center else dt.UTC
