"""The page "Today": who comes, what to prepare, and the day sheet to print (B18.1).

The number of queries depends neither on the number of meetings nor on that of centers.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from django import forms
from django.db import models
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from accounts import customer_access, roles
from accounts.models import User
from centers.models import Center
from centers.span import Span
from reservations.booking.balances import get_unpaid_amounts
from reservations.desk.actions import ACTIONS
from reservations.desk.find_room import FindRoomForm
from reservations.desk.forms import CenterForm
from reservations.desk.notes import load_notes
from reservations.desk.previews import Action
from reservations.display import format_time_zone
from reservations.local_days import DAY, LocalDays, filter_by_local_span
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications.cancellation_terms import describe_terms
from reservations.pricing.terms import ALL, get_terms
from roombook import dates, places
from roombook.backoffice.pages import BackofficePages
from roombook.backoffice.widgets import DayField

# The key in the session of the center that was chosen last; None is all centers.
LAST_CENTER = "today_center"
# More meetings are not loaded: staff of many centers choose one.
MAX_ARRIVALS = 200
# They are taken with one click; a no-show that needs its preview is not on the page.
ROW_ACTIONS = ("check-in", "undo-check-in", "no-show", "undo-no-show")


class DayFilterForm(CenterForm):
    """Selects a center, or all, and a day."""

    date = DayField(required=False)

    def __init__(self, data: Mapping[str, object], centers: QuerySet[Center]) -> None:
        super().__init__(data, auto_id="today-%s", centers=centers)
        self.fields["center"].required = False
        self.fields["center"].label = "Center (empty: all)"


class TodayPage(BackofficePages):
    """The page of a day."""

    pages = (("today/", "show", "reservations_today"),)

    def show(self, request: HttpRequest) -> HttpResponse:
        """The meetings of a day. Without parameters today, at the center that was chosen last."""
        user = roles.require_permission(request, roles.VIEW_RESERVATION)
        centers = Center.objects.filter(roles.get_center_filter(user, roles.VIEW_RESERVATION, ""))
        now = timezone.now()
        only, *others = centers.order_by("pk")[:2] or [None]
        last = centers.filter(pk=request.session.get(LAST_CENTER) or 0).first()
        last = last or (None if others else only)
        form = DayFilterForm({"center": last and last.pk, **request.GET.dict()}, centers)
        form.full_clean()
        center: Center | None = form.cleaned_data.get("center")
        day = form.cleaned_data.get("date")
        if "center" in request.GET and "center" not in form.errors and center != last:
            request.session[LAST_CENTER] = center and center.pk
        # Other meetings than those that were asked for would look like the answer.
        meetings = None if form.errors else load_day(user, center, day, now=now)
        today = meetings["local_days"] if meetings else [now.date()]
        days = [day] if day else today
        title = " and ".join(map(dates.format_day, days)) if meetings else "Nothing shown"
        if meetings and days == today:
            title = f"Today, {title}"
        find_form = FindRoomForm(QueryDict(), centers, center, now)
        find_form.fields["center"].widget = forms.HiddenInput()
        context = {
            "title": title,
            "form": form,
            "media": form.media,
            "center": center,
            "meetings": meetings,
            "can_book": meetings
            and center
            and day is None
            and roles.has_permission(user, roles.ADD_RESERVATION, center.pk),
            "find_form": find_form,
            "day_links": [
                ("Previous day", "chevron_left", days[0] - DAY),
                ("Today", "", None),
                ("Next day", "chevron_right", days[0] + DAY),
            ],
        }
        return self.render(request, "admin/reservations/today.html", context)


# --- The meetings of a day ------------------------------------------------------------------------


class Urgency(models.IntegerChoices):
    """How soon staff have to do something about a meeting."""

    LATE = 0, "Has begun, not checked in"
    EXPECTED = 1, "Expected"
    UNKNOWN = 2, "Over, not checked in"
    HERE = 3, "Here"
    DONE = 4, "Done"


def find_time_zones(user: User, center: Center | None) -> list[str]:
    """The time zones of the centers whose reservations the user may see, or of that center."""
    if center is not None:
        return [center.time_zone_id]
    centers = Center.objects.filter(roles.get_center_filter(user, roles.VIEW_RESERVATION, ""))
    return centers.list_time_zones()


def filter_by_day(zones: Sequence[str], get_day: Callable[[dt.tzinfo], dt.date]) -> Q:
    """Reservations that start on the local day of their center, which `get_day` returns."""

    def get_day_span(name: str) -> Span:
        day = get_day(places.get_time_zone(name))
        return LocalDays(day, day).span(name)

    return filter_by_local_span(zones, get_day_span)


def load_day(
    user: User, center: Center | None, day: dt.date | None, *, now: dt.datetime
) -> dict[str, Any]:
    """Load a day of all centers that the user may see, or of one; None is today at each center.

    The centers where something is most urgent come first. `local_days` are the dates of today at
    the centers, in order.
    """
    zones = find_time_zones(user, center)
    condition = filter_by_day(zones, lambda zone: day or now.astimezone(zone).date())
    if center is not None:
        condition &= Q(room__center=center)
    rows = (
        Reservation.objects.occupying_time(now)
        .filter(condition, roles.get_center_filter(user, roles.VIEW_RESERVATION))
        .select_related("room__center", "user")
        .prefetch_related("chosen_services__service")
        .order_by("start", "pk")
    )
    found = list(rows[: MAX_ARRIVALS + 1])
    arrivals = _describe_arrivals(found[:MAX_ARRIVALS], user, now)
    by_center = defaultdict(list)
    # Within an urgency they stay in the order of their start.
    for arrival in sorted(arrivals, key=lambda each: each["urgency"]):
        by_center[arrival["reservation"].room.center].append(arrival)
    local_days = {now.astimezone(places.get_time_zone(zone)).date() for zone in zones}
    return {
        "centers": [_describe_center(*each, now) for each in by_center.items()],
        "has_more": len(found) > MAX_ARRIVALS,
        "local_days": sorted(local_days) or [now.date()],
    }


def _describe_center(
    center: Center, arrivals: list[dict[str, Any]], now: dt.datetime
) -> dict[str, Any]:
    """The arrivals are in the order of the page; `preparations` are by start."""
    rows = sorted((each["reservation"] for each in arrivals), key=attrgetter("start", "pk"))
    return {
        "center": center,
        "day": dates.format_day(rows[0].start.astimezone(center.zone)),
        "zone_name": format_time_zone(center, rows[0].start),
        "arrivals": arrivals,
        "preparations": [
            row
            for row in rows
            if row.end > now and row.status != Status.NO_SHOW and row.chosen_services.all()
        ],
    }


def _describe_arrivals(
    rows: list[Reservation], user: User, now: dt.datetime
) -> Iterator[dict[str, Any]]:
    payable = [
        row.pk for row in rows if roles.has_permission(user, roles.VIEW_PAYMENT, row.room.center_id)
    ]
    unpaid = get_unpaid_amounts(Reservation.objects.filter(pk__in=payable))
    customers = User.objects.filter(customer_access.get_account_filter(user))
    visible = set(
        customers.filter(pk__in={row.user_id for row in rows}).values_list("pk", flat=True)
    )
    notes = load_notes(rows, user)
    offered = [ACTIONS[name] for name in ROW_ACTIONS]
    for row in rows:
        yield {
            "reservation": row,
            "urgency": _get_urgency(row, now),
            "can_see_customer": row.user_id in visible
            and roles.has_permission(user, roles.VIEW_USER, row.room.center_id),
            "unpaid": unpaid.get(row.pk),
            "notes": notes.get(row.pk, []),
            "terms": _describe_terms(row, now),
            "actions": [
                each
                for each in offered
                if _is_possible(each, row, user, now) and each.is_immediate(row, now=now)
            ],
            "can_extend": row.start <= now and _is_possible(ACTIONS["extend"], row, user, now),
        }


def _is_possible(action: Action, row: Reservation, user: User, now: dt.datetime) -> bool:
    return action.is_available(row, now=now) and action.is_permitted(user, row)


def _describe_terms(row: Reservation, now: dt.datetime) -> str:
    """What cancelling gives back while it gives some, and what a no-show costs if that is not all.

    Such a no-show has a preview, and no button here.
    """
    terms = get_terms(row)
    is_booked = row.status == Status.CONFIRMED and now < row.start
    if is_booked and terms.get_percent(row, now):
        return describe_terms(terms, row, row.room.center, now=now)
    is_possible = ACTIONS["no-show"].is_available(row, now=now)
    percent = terms.no_show_percent
    return f"A no-show costs {percent}%" if is_possible and percent < ALL else ""


def _get_urgency(row: Reservation, now: dt.datetime) -> Urgency:
    is_over = row.end <= now
    if row.status == Status.NO_SHOW or (is_over and row.is_checked_in):
        return Urgency.DONE
    if is_over:
        return Urgency.UNKNOWN
    if row.is_checked_in:
        return Urgency.HERE
    return Urgency.LATE if row.start <= now else Urgency.EXPECTED
