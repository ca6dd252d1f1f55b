"""The front page of the back office: requests, the size of the day, alerts and figures.

Each card shows only what the user's roles permit, at their centers; a card that they may not see
is left out. The number of queries does not depend on the number of centers.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from django.conf import settings
from django.db.models import Count, DateTimeField
from django.db.models.functions import Coalesce, Least
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil

from accounts import roles
from accounts.models import User
from reservations.desk.dashboard.alerts import (
    MAX_ALERTS,
    DashboardAlert,
    find_alerts,
    get_alert_topics,
)
from reservations.desk.dashboard.figures import DashboardFigures, build_figures
from reservations.desk.dashboard.first_steps import FirstStep, find_first_steps
from reservations.desk.today.arrivals import filter_by_day, find_time_zones
from reservations.display import format_customer
from reservations.local_days import DAY
from reservations.models import Reservation
from reservations.models.reservation import IS_CHECKED_IN
from reservations.models.status import Status
from roombook import dates, money

MAX_REQUESTS = 8


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A pending request on the dashboard, in the local time of its center."""

    reservation: Reservation
    day: str
    time: str
    zone: str
    customer: str
    total: str
    waiting: str
    expires: str
    can_answer: bool


@dataclass(frozen=True, slots=True)
class DayCount:
    """The bookings of a day; the page "Today" lists them."""

    title: str
    meetings: int
    checked_in: int


@dataclass(slots=True)
class Dashboard:
    """The front page; what is None is not for this user."""

    first_steps: list[FirstStep] = field(default_factory=list)
    requests: list[PendingRequest] | None = None
    has_more_requests: bool = False
    days: list[DayCount] = field(default_factory=list)
    alerts: list[DashboardAlert] | None = None
    no_alerts: str = ""
    figures: DashboardFigures | None = None

    @property
    def can_answer(self) -> bool:
        """Whether the user may answer any of the requests."""
        return any(request.can_answer for request in self.requests or ())


def add_dashboard_to_context(request: HttpRequest, context: dict[str, object]) -> dict[str, object]:
    """The callback of the theme's index page (settings.UNFOLD)."""
    assert isinstance(request.user, User)
    return {**context, "dashboard": build_dashboard(request.user, now=timezone.now())}


def build_dashboard(user: User, *, now: dt.datetime) -> Dashboard:
    dashboard = Dashboard(find_first_steps(user))
    if roles.has_permission(user, roles.VIEW_RESERVATION):
        dashboard.requests, dashboard.has_more_requests = _get_requests(user, now)
        dashboard.days = list(_count_arrivals(user, now))
    if topics := get_alert_topics(user):
        dashboard.alerts = list(islice(find_alerts(user, now), MAX_ALERTS))
        dashboard.no_alerts = f"No problems with {' or '.join(topics)}."
    if roles.has_permission(user, roles.SEE_REPORTS):
        dashboard.figures = build_figures(user, now)
    return dashboard


def _get_requests(user: User, now: dt.datetime) -> tuple[list[PendingRequest], bool]:
    """The requests awaiting approval, what expires first on top, and whether there are more."""
    answer_by = Coalesce("booked_at", "created_at") + dt.timedelta(hours=settings.PENDING_HOURS)
    rows = (
        Reservation.objects.filter(
            roles.get_center_filter(user, roles.VIEW_RESERVATION), status=Status.PENDING
        )
        .select_related("room__center", "user")
        .annotate(expires_at=Least("start", answer_by, output_field=DateTimeField()))
        .order_by("expires_at", "pk")
    )
    found = list(rows[: MAX_REQUESTS + 1])
    centers = roles.get_permitted_centers(user, roles.CHANGE_RESERVATION)
    zones = {row.room.center.time_zone_id for row in found}
    requests = [
        PendingRequest(
            reservation=row,
            day=dates.format_day(row.start.astimezone(row.room.center.zone)),
            time=dates.format_hours(row.start, row.end, row.room.center.zone),
            zone=f"{row.start.astimezone(row.room.center.zone):%Z}" if len(zones) > 1 else "",
            customer=format_customer(row),
            total=money.format_amount(row.total_cost),
            waiting=timesince(row.booked_at or row.created_at, now, depth=1).replace("\xa0", " "),
            expires=_format_expiry(row.expires_at, now),
            can_answer=centers is None or row.room.center_id in centers,
        )
        for row in found[:MAX_REQUESTS]
    ]
    return requests, len(found) > MAX_REQUESTS


def _format_expiry(expires_at: dt.datetime, now: dt.datetime) -> str:
    """When a request expires unless it is answered: `expires in 3 hours`."""
    if expires_at <= now:
        return "expires now"
    return f"expires in {timeuntil(expires_at, now, depth=1)}".replace("\xa0", " ")


def _get_local_day(now: dt.datetime, days: int, zone: dt.tzinfo) -> dt.date:
    return now.astimezone(zone).date() + days * DAY


def _count_arrivals(user: User, now: dt.datetime) -> Iterator[DayCount]:
    """Count the bookings of today and tomorrow, on the local days of each center."""
    zones = find_time_zones(user, None)
    visible = Reservation.objects.counting_as_revenue().filter(
        roles.get_center_filter(user, roles.VIEW_RESERVATION)
    )
    for title, days in (("Today", 0), ("Tomorrow", 1)):
        is_on_day = filter_by_day(zones, partial(_get_local_day, now, days))
        counts = visible.filter(is_on_day).aggregate(
            meetings=Count("pk"), checked_in=Count("pk", filter=IS_CHECKED_IN)
        )
        yield DayCount(title, **counts)
