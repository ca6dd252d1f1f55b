"""The meetings of a day at each center, most urgent first, and the services to prepare.

The number of queries depends neither on the number of meetings nor on that of centers.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db import models
from django.db.models import Q
from django.urls import reverse

from accounts import customer_access, roles
from accounts.models import User
from centers.models import Center
from centers.span import Span
from reservations.booking.balances import get_unpaid_amounts
from reservations.desk.actions import ACTIONS
from reservations.desk.notes import load_notes
from reservations.desk.previews import Action
from reservations.display import format_customer, format_service, format_time_zone
from reservations.local_days import LocalDays, filter_by_local_span
from reservations.models import Note, Reservation
from reservations.models.status import Status
from reservations.notifications.cancellation_terms import describe_terms
from reservations.pricing.terms import ALL, get_terms
from roombook import dates, money, places

# More meetings are not loaded: staff of many centers choose one.
MAX_ARRIVALS = 200
# They are taken with one click; a no-show that needs its preview is not on the page.
ROW_ACTIONS = ("check-in", "undo-check-in", "no-show", "undo-no-show")


class Urgency(models.IntegerChoices):
    """How soon staff have to do something about a meeting."""

    LATE = 0, "Has begun, not checked in"
    EXPECTED = 1, "Expected"
    UNKNOWN = 2, "Over, not checked in"
    HERE = 3, "Here"
    DONE = 4, "Done"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A meeting of the day, in the local time of its center.

    What the user may not see is empty: the address of the customer's page, the phone number and
    the amount that is not paid.
    """

    reservation: Reservation
    urgency: Urgency
    time: str
    customer: str
    customer_id: int | None
    phone: str
    unpaid: str
    services: list[str]
    notes: list[Note]
    checked_in: str
    terms: str
    actions: list[Action]
    extend_url: str


@dataclass(frozen=True, slots=True)
class CenterDay:
    """A day at a center.

    `groups` are the meetings by their urgency, in the order of their start, and `preparations`
    those with services that are not over.
    """

    center: Center
    day: str
    zone_name: str
    groups: list[tuple[Urgency, list[Arrival]]]
    preparations: list[Arrival]


@dataclass(frozen=True, slots=True)
class DayMeetings:
    """The meetings by center; `local_days` are the dates of today at the centers, in order."""

    centers: list[CenterDay]
    has_more: bool
    local_days: list[dt.date]


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
) -> DayMeetings:
    """Load a day of all centers that the user may see, or of one; None is today at each center."""
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
    arrivals = list(_describe_arrivals(found[:MAX_ARRIVALS], user, now))
    by_center = defaultdict(list)
    # A stable sort: within an urgency, they stay in the order of their start.
    for arrival in sorted(arrivals, key=lambda each: each.urgency):
        by_center[arrival.reservation.room.center_id].append(arrival)
    centers = [_describe_center(each, now) for each in by_center.values()]
    local_days = {now.astimezone(places.get_time_zone(zone)).date() for zone in zones}
    return DayMeetings(centers, len(found) > MAX_ARRIVALS, sorted(local_days) or [now.date()])


def _describe_center(arrivals: list[Arrival], now: dt.datetime) -> CenterDay:
    center = arrivals[0].reservation.room.center
    by_start = sorted(arrivals, key=lambda each: (each.reservation.start, each.reservation.pk))
    start = by_start[0].reservation.start
    return CenterDay(
        center=center,
        day=dates.format_day(start.astimezone(center.zone)),
        zone_name=format_time_zone(center, start),
        groups=[
            (urgency, list(group))
            for urgency, group in groupby(arrivals, lambda each: each.urgency)
        ],
        preparations=[
            each
            for each in by_start
            if each.services
            and each.reservation.end > now
            and each.reservation.status != Status.NO_SHOW
        ],
    )


def _describe_arrivals(rows: list[Reservation], user: User, now: dt.datetime) -> Iterator[Arrival]:
    payable = [
        row.pk for row in rows if roles.has_permission(user, roles.VIEW_PAYMENT, row.room.center_id)
    ]
    unpaid = get_unpaid_amounts(Reservation.objects.filter(pk__in=payable))
    customers = User.objects.filter(customer_access.get_account_filter(user))
    visible = set(
        customers.filter(pk__in={row.user_id for row in rows}).values_list("pk", flat=True)
    )
    notes = load_notes(rows, user)
    for row in rows:
        center = row.room.center
        can_see_customer = row.user_id in visible and roles.has_permission(
            user, roles.VIEW_USER, center.pk
        )
        arrived = row.checked_in_at if row.is_checked_in else None
        yield Arrival(
            reservation=row,
            urgency=_get_urgency(row, now),
            time=dates.format_hours(row.start, row.end, center.zone),
            customer=format_customer(row),
            customer_id=row.user_id if can_see_customer else None,
            phone=row.user.phone_number if can_see_customer else "",
            unpaid=money.format_amount(unpaid[row.pk]) if row.pk in unpaid else "",
            services=[format_service(each) for each in row.chosen_services.all()],
            notes=notes.get(row.pk, []),
            checked_in=f"{arrived.astimezone(center.zone):%H:%M}" if arrived else "",
            terms=_describe_terms(row, now),
            actions=list(_find_actions(row, user, now)),
            extend_url=_get_extend_url(row, user, now),
        )


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


def _find_actions(row: Reservation, user: User, now: dt.datetime) -> Iterator[Action]:
    for name in ROW_ACTIONS:
        action = ACTIONS[name]
        is_possible = action.is_available(row, now=now) and action.is_permitted(user, row)
        if is_possible and action.is_immediate(row, now=now):
            yield action


def _get_extend_url(row: Reservation, user: User, now: dt.datetime) -> str:
    """The page that extends a meeting that takes place, or "" if the user cannot do that."""
    action = ACTIONS["extend"]
    is_running = row.start <= now and action.is_available(row, now=now)
    if not is_running or not action.is_permitted(user, row):
        return ""
    return reverse("admin:reservations_reservation_action", args=[row.pk, action.name])
