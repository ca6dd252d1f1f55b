"""The filter of the reservation list by the start, and the order of the list."""

import datetime as dt
from collections.abc import Callable

from django.http import HttpRequest

from accounts.admin.date_range import DAY, Days, PeriodFilter
from reservations.models.status import Status

DATE_PARAMETER, RANGE_PARAMETERS = "when", ("start_from", "start_to")
UPCOMING, PAST, ALL = "upcoming", "past", "all"
PERIODS: dict[str, tuple[str, Callable[[dt.date], Days]]] = {
    UPCOMING: ("Upcoming", lambda today: (today, None)),
    "today": ("Today", lambda today: (today, today + DAY)),
    "tomorrow": ("Tomorrow", lambda today: (today + DAY, today + 2 * DAY)),
    "week": ("Next 7 days", lambda today: (today, today + 7 * DAY)),
    PAST: ("Past", lambda today: (None, today)),
    ALL: ("All dates", lambda today: (None, None)),
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
    """Which of PERIODS the list shows; "" if the user entered days.

    What comes next, unless a search or a filter asks for something that may be in the past.
    """
    query = {name: value for name, value in request.GET.items() if value}
    if any(name in query for name in RANGE_PARAMETERS):
        return ""
    if (selected := request.GET.get(DATE_PARAMETER, "")) in PERIODS:
        return selected
    is_open = query.get("status__exact", Status.CONFIRMED) in OPEN_STATUSES
    return UPCOMING if is_open and query.keys() <= UPCOMING_PARAMETERS else ALL


def is_latest_first(request: HttpRequest) -> bool:
    return get_selected_dates(request) in {PAST, ALL}


class StartDateFilter(PeriodFilter):
    """By the day on which a reservation starts."""

    title = "start"
    parameter_name = DATE_PARAMETER
    field_path = "start"
    periods = PERIODS
    all_option = ["", "Upcoming; all dates in a search"]
    unlisted_values = frozenset({UPCOMING})

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [each for each in super().lookups(request, model_admin) if each[0] != UPCOMING]

    def get_selected(self, request: HttpRequest) -> str:
        return get_selected_dates(request)
