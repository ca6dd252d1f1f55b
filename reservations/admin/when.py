"""The filter by day of the list of reservations."""

import datetime as dt
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

DAY = dt.timedelta(days=1)


class When(admin.SimpleListFilter):
    """By the day on which a reservation starts.

    In UTC, since the list spans centers whose days begin at different moments.
    """

    title = "start (days in UTC)"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("today", "Today"),
            ("tomorrow", "Tomorrow"),
            ("week", "Next 7 days"),
            ("past", "Past"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
        match self.value():
            case "today":
                return queryset.filter(start__gte=today, start__lt=today + DAY)
            case "tomorrow":
                return queryset.filter(start__gte=today + DAY, start__lt=today + 2 * DAY)
            case "week":
                return queryset.filter(start__gte=today, start__lt=today + 7 * DAY)
            case "past":
                return queryset.filter(start__lt=today)
        return queryset
