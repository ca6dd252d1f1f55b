"""The front page of the back office: requests, the size of the day, alerts and figures.

Each card shows only what the user's roles permit, at their centers; a card that they may not see
is left out. The number of queries does not depend on the number of centers.
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Count, DateTimeField
from django.db.models.functions import Coalesce, Least
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil

from accounts import roles
from accounts.models import User
from reservations.desk.dashboard.alerts import MAX_ALERTS, find_alerts, get_alert_topics
from reservations.desk.dashboard.figures import build_figures
from reservations.desk.dashboard.first_steps import find_first_steps
from reservations.desk.today import filter_by_day, find_time_zones
from reservations.local_days import DAY
from reservations.models import Reservation
from reservations.models.reservation import IS_CHECKED_IN
from reservations.models.status import Status

MAX_REQUESTS = 8


def add_dashboard_to_context(request: HttpRequest, context: dict[str, object]) -> dict[str, object]:
    """The callback of the theme's index page (settings.UNFOLD)."""
    assert isinstance(request.user, User)
    return {**context, "dashboard": build_dashboard(request.user, now=timezone.now())}


def build_dashboard(user: User, *, now: dt.datetime) -> dict[str, Any]:
    """The cards of the page; one that is missing is not for this user."""
    dashboard: dict[str, Any] = {"first_steps": find_first_steps(user)}
    if roles.has_permission(user, roles.VIEW_RESERVATION):
        requests = list(_find_requests(user, now))
        dashboard |= {
            "requests": requests[:MAX_REQUESTS],
            "has_more_requests": len(requests) > MAX_REQUESTS,
            "can_answer": any(each["can_answer"] for each in requests),
            "days": list(_count_arrivals(user, now)),
        }
    if topics := get_alert_topics(user):
        dashboard["alerts"] = list(islice(find_alerts(user, now), MAX_ALERTS))
        dashboard["no_alerts"] = f"No problems with {' or '.join(topics)}."
    if roles.has_permission(user, roles.SEE_REPORTS):
        dashboard["figures"] = build_figures(user, now)
    return dashboard


def _find_requests(user: User, now: dt.datetime) -> Iterator[dict[str, Any]]:
    """The requests awaiting approval, what expires first on top; one more than is shown."""
    answer_by = Coalesce("booked_at", "created_at") + dt.timedelta(hours=settings.PENDING_HOURS)
    rows = (
        Reservation.objects.filter(
            roles.get_center_filter(user, roles.VIEW_RESERVATION), status=Status.PENDING
        )
        .select_related("room__center", "user")
        .annotate(expires_at=Least("start", answer_by, output_field=DateTimeField()))
        .order_by("expires_at", "pk")
    )
    centers = roles.get_permitted_centers(user, roles.CHANGE_RESERVATION)
    for row in rows[: MAX_REQUESTS + 1]:
        rest = timeuntil(row.expires_at, now, depth=1) if row.expires_at > now else ""
        yield {
            "reservation": row,
            "waiting": timesince(row.booked_at or row.created_at, now, depth=1),
            "expires": f"expires in {rest}" if rest else "expires now",
            "can_answer": centers is None or row.room.center_id in centers,
        }


def _get_local_day(now: dt.datetime, days: int, zone: dt.tzinfo) -> dt.date:
    return now.astimezone(zone).date() + days * DAY


def _count_arrivals(user: User, now: dt.datetime) -> Iterator[dict[str, Any]]:
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
        yield {"title": title, **counts}
