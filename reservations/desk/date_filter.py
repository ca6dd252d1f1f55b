"""The filters of the reservation list by the start, and the order of the list."""

import datetime as dt

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from accounts import roles
from accounts.admin.center_scope import get_shared_time_zone
from accounts.admin.date_range import DateRangeFilter
from centers.models import Center
from centers.span import get_local_midnight
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.ids import parse_id

DATE_PARAMETER, RANGE_PARAMETERS = "when", ("start_from", "start_to")
UPCOMING, PAST, ALL = "upcoming", "past", "all"
# By value of the filter: its label, the first day counted from today, and the day after the last.
RANGES: dict[str, tuple[str, int | None, int | None]] = {
    UPCOMING: ("Upcoming", 0, None),
    "today": ("Today", 0, 1),
    "tomorrow": ("Tomorrow", 1, 2),
    "week": ("Next 7 days", 0, 7),
    PAST: ("Past", None, 0),
    ALL: ("All dates", None, None),
}
# The only parameters with which the list still shows what comes next.
UPCOMING_PARAMETERS = {
    "room__center__id__exact",
    "room__id__exact",
    "status__exact",
    DATE_PARAMETER,
    "o",
    "p",
    "e",
}
OPEN_STATUSES = {Status.NEW, Status.PROCESSING, Status.PENDING, Status.CONFIRMED}


def get_selected_dates(request: HttpRequest) -> str:
    """Which of RANGES the list shows; "" if the user entered days.

    What comes next, unless a search or a filter asks for something that may be in the past.
    """
    query = {name: value for name, value in request.GET.items() if value}
    if any(name in query for name in RANGE_PARAMETERS):
        return ""
    if (selected := request.GET.get(DATE_PARAMETER, "")) in RANGES:
        return selected
    is_open = query.get("status__exact", Status.CONFIRMED) in OPEN_STATUSES
    return UPCOMING if is_open and query.keys() <= UPCOMING_PARAMETERS else ALL


def is_latest_first(request: HttpRequest) -> bool:
    return get_selected_dates(request) in {PAST, ALL}


def get_zone(request: HttpRequest) -> dt.tzinfo:
    """The time zone of the list's room or center, or the one that the user's centers share."""
    room = parse_id(request.GET.get("room__id__exact"))
    if room is not None and (center := Center.objects.filter(rooms=room).first()):
        return center.zone
    return get_shared_time_zone(
        request, roles.VIEW_RESERVATION, center_parameter="room__center__id__exact"
    )


class StartDateFilter(DropdownFilter):
    """By the day on which a reservation starts, counted from today."""

    title = "start"
    parameter_name = DATE_PARAMETER
    all_option = ["", "Upcoming; all dates in a search"]
    unlisted_values = frozenset({UPCOMING})

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(value, label) for value, (label, _, _) in RANGES.items() if value != UPCOMING]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Reservation]
    ) -> QuerySet[Reservation]:
        _, first, end = RANGES.get(get_selected_dates(request), ("", None, None))
        if first is None and end is None:
            return queryset
        zone = get_zone(request)
        today = timezone.now().astimezone(zone).date()
        if first is not None:
            first_day = today + dt.timedelta(days=first)
            queryset = queryset.filter(start__gte=get_local_midnight(first_day, zone))
        if end is not None:
            end_day = today + dt.timedelta(days=end)
            queryset = queryset.filter(start__lt=get_local_midnight(end_day, zone))
        return queryset


class StartRangeFilter(DateRangeFilter):
    """By the first and the last day on which a reservation starts."""

    title = "days"

    def get_zone(self, request: HttpRequest) -> dt.tzinfo:
        return get_zone(request)
