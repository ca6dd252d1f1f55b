"""The front page of the back office: today's requests, arrivals, alerts and figures.

Each card shows only what the user's roles permit, at their centers; a card that they may not see
is left out. The number of queries does not depend on the number of centers.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice

from django.conf import settings
from django.db.models import DateTimeField, QuerySet
from django.db.models.functions import Coalesce, Least
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil

from accounts import roles
from accounts.models import User
from centers.models import Center
from centers.span import Span, get_local_midnight
from reservations.admin.dashboard.alerts import (
    MAX_ALERTS,
    DashboardAlert,
    find_alerts,
    get_alert_topics,
)
from reservations.admin.dashboard.figures import DashboardFigures, build_figures
from reservations.admin.formatting import format_customer
from reservations.admin.overruns import get_overrun_urls
from reservations.admin.reports.periods import DAY, filter_by_local_span
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES, Status
from roombook import dates, money, places

MAX_REQUESTS = 8
MAX_ARRIVALS = 15


@dataclass(frozen=True, slots=True)
class DashboardReservation:
    """A reservation on the dashboard, in the local time of its center."""

    reservation: Reservation
    day: str
    time: str
    zone: str
    customer: str
    total: str
    # Of requests only.
    waiting: str = ""
    expires: str = ""
    can_answer: bool = False
    # Of meetings that take place now: the page that books the room for longer.
    overrun_url: str = ""


@dataclass(frozen=True, slots=True)
class ArrivalsDay:
    """The first arrivals of a day, and whether there are more."""

    title: str
    arrivals: list[DashboardReservation]
    has_more: bool


@dataclass(slots=True)
class Dashboard:
    """The front page; what is None is not for this user."""

    requests: list[DashboardReservation] | None = None
    has_more_requests: bool = False
    days: list[ArrivalsDay] = field(default_factory=list)
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
    dashboard = Dashboard()
    if roles.has_permission(user, roles.VIEW_RESERVATION):
        zones = _get_zones(user)
        dashboard.requests, dashboard.has_more_requests = _get_requests(user, zones, now)
        # Today's meetings that are over are left out; the zones do not share one today.
        today = _get_arrivals(user, zones, now.astimezone).filter(end__gt=now)
        tomorrow = _get_arrivals(user, zones, lambda zone: now.astimezone(zone) + DAY)
        dashboard.days = [
            _describe_day("Today", today, zones, user, now),
            _describe_day("Tomorrow", tomorrow, zones, user, now),
        ]
    if topics := get_alert_topics(user):
        dashboard.alerts = list(islice(find_alerts(user, now), MAX_ALERTS))
        dashboard.no_alerts = f"No problems with {' or '.join(topics)}."
    if roles.has_permission(user, roles.SEE_REPORTS):
        dashboard.figures = build_figures(user, now)
    return dashboard


def _get_zones(user: User) -> list[str]:
    """The time zones of the centers whose reservations the user may see."""
    centers = Center.objects.filter(roles.get_center_filter(user, roles.VIEW_RESERVATION, ""))
    zones = centers.order_by("time_zone_id").values_list("time_zone_id", flat=True)
    return list(zones.distinct())


def _get_reservations(user: User) -> QuerySet[Reservation]:
    visible = roles.get_center_filter(user, roles.VIEW_RESERVATION)
    return Reservation.objects.filter(visible).select_related("room__center", "user")


def _get_requests(
    user: User, zones: list[str], now: dt.datetime
) -> tuple[list[DashboardReservation], bool]:
    """The requests awaiting approval, what expires first on top, and whether there are more."""
    answer_by = Coalesce("booked_at", "created_at") + dt.timedelta(hours=settings.PENDING_HOURS)
    rows = (
        _get_reservations(user)
        .filter(status=Status.PENDING)
        .annotate(expires_at=Least("start", answer_by, output_field=DateTimeField()))
        .order_by("expires_at", "pk")
    )
    found = list(rows[: MAX_REQUESTS + 1])
    centers = roles.get_permitted_centers(user, roles.CHANGE_RESERVATION)
    requests = [
        replace(
            _describe(row, zones),
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


def _get_arrivals(
    user: User, zones: list[str], get_local: Callable[[dt.tzinfo], dt.datetime]
) -> QuerySet[Reservation]:
    """The bookings that start on the local day of each center that ``get_local`` returns."""

    def get_day_span(name: str) -> Span:
        zone = places.get_time_zone(name)
        day = get_local(zone).date()
        return Span(get_local_midnight(day, zone), get_local_midnight(day + DAY, zone))

    return _get_reservations(user).filter(
        filter_by_local_span(zones, get_day_span), status__in=sorted(REVENUE_STATUSES)
    )


def _describe_day(
    title: str, rows: QuerySet[Reservation], zones: list[str], user: User, now: dt.datetime
) -> ArrivalsDay:
    found = list(rows.order_by("start", "room__center__name", "pk")[: MAX_ARRIVALS + 1])
    overrun_urls = get_overrun_urls(found[:MAX_ARRIVALS], user, now=now)
    arrivals = [
        replace(_describe(row, zones), overrun_url=overrun_urls.get(row.pk, ""))
        for row in found[:MAX_ARRIVALS]
    ]
    return ArrivalsDay(title, arrivals, len(found) > MAX_ARRIVALS)


def _describe(row: Reservation, zones: list[str]) -> DashboardReservation:
    zone = row.room.center.zone
    start = row.start.astimezone(zone)
    return DashboardReservation(
        reservation=row,
        day=dates.format_day(start),
        time=dates.format_hours(start, row.end, zone),
        zone=f"{start:%Z}" if len(zones) > 1 else "",
        customer=format_customer(row),
        total=money.format_amount(row.total_cost),
    )
