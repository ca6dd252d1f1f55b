"""The front page of the back office: what today asks of whoever is at work.

Each card shows only what their roles let them see, at their centers; a card that is not theirs is
not there. The page takes as many queries for a center as for a thousand of them.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince, timeuntil

from accounts import roles
from accounts.customer_access import get_customer_filter
from accounts.models import User
from accounts.outbox import OutboxMessage
from centers.models import Center
from centers.span import Span, get_local_midnight
from payments.models import Payment
from reservations.admin.reports import charts, revenue, utilization
from reservations.admin.reports.charts import Chart
from reservations.admin.reports.filters import SEE
from reservations.admin.reports.periods import (
    DAY,
    ReportPeriod,
    count_days_in_month,
    filter_by_local_span,
)
from reservations.admin.reports.selection import ReportSelection, ReportTooLarge
from reservations.admin.reports.tables import format_percent
from reservations.booking import alerts
from reservations.models import Reservation
from reservations.models.status import REVENUE_STATUSES, Status
from roombook import dates, money, places

VIEW = "reservations.view_reservation"
CHANGE = "reservations.change_reservation"
PAYMENTS = "payments.view_payment"
DISPUTES = "payments.view_dispute"
MAILS = "accounts.view_outboxmessage"

# So many are shown of each; the lists have the rest.
MAX_REQUESTS = 8
MAX_ARRIVALS = 15
MAX_ALERTS = 10
# More mails than these are one line.
MAX_EMAIL_ALERTS = 3
MAX_COUNTED_EMAILS = 100
# Of more centers than these the figures are for the reports: they would keep the page waiting.
MAX_CENTERS = 1_000
# Money of meetings longer ago is found by reconcile_payments, which looks at all of it.
ALERT_LOOKBACK = dt.timedelta(days=31)


@dataclass(frozen=True, slots=True)
class DashboardReservation:
    """A reservation as the front page tells it, on the clock of its center."""

    pk: int
    day: str
    time: str
    zone: str
    room: str
    center: str
    customer: str
    people: int
    status: str
    status_label: str
    total: str
    address: str
    waits: str = ""
    lapses: str = ""
    may_answer: bool = False


@dataclass(frozen=True, slots=True)
class ArrivalsDay:
    """The arrivals of a day, and how many more there are than are shown."""

    title: str
    meetings: list[DashboardReservation]
    has_more: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class DashboardAlert:
    """Something that needs a person, with where to see to it."""

    what: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True)
class MonthComparison:
    """The month up to a day against the same days of the month before."""

    now: str
    before: str
    this_period: str
    last_period: str
    change: str
    is_up: bool
    bars: Chart
    note: str = ""


@dataclass(slots=True)
class Dashboard:
    """The front page; what is None is not for these eyes."""

    requests: list[DashboardReservation] | None = None
    more_requests: bool = False
    days: list[ArrivalsDay] = field(default_factory=list)
    concerns: list[DashboardAlert] | None = None
    all_well: str = ""
    week: Chart | None = None
    week_title: str = ""
    week_share: str = ""
    note: str = ""
    month: MonthComparison | None = None

    @property
    def may_answer(self) -> bool:
        """Whether any of the requests is theirs to answer."""
        return any(each.may_answer for each in self.requests or ())


def add_dashboard_to_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What the theme's index is filled with (settings.UNFOLD)."""
    assert isinstance(request.user, User)
    return {**context, "home": build_dashboard(request.user, now=timezone.now())}


def build_dashboard(user: User, *, now: dt.datetime) -> Dashboard:
    page = Dashboard()
    if roles.has_permission(user, VIEW):
        zones = _zones(roles.get_center_filter(user, VIEW, ""))
        page.requests, page.more_requests = _requests(user, zones, now)
        page.days = [_today(user, zones, now), _tomorrow(user, zones, now)]
    if roles.has_permission(user, PAYMENTS) or roles.has_permission_everywhere(user, MAILS):
        page.concerns = list(islice(_concerns(user, now), MAX_ALERTS))
        page.all_well = _all_well(user)
    if roles.has_permission(user, SEE):
        _figures(page, user, now)
    return page


def _zones(centers: Q) -> list[str]:
    rows = Center.objects.filter(centers).order_by("time_zone_id")
    return list(rows.values_list("time_zone_id", flat=True).distinct())


# --- Requests and arrivals -----------------------------------------------------------------------


def _meetings(user: User) -> QuerySet[Reservation]:
    return Reservation.objects.filter(roles.get_center_filter(user, VIEW)).select_related(
        "room__center", "user"
    )


def _requests(
    user: User, zones: list[str], now: dt.datetime
) -> tuple[list[DashboardReservation], bool]:
    """Those that wait for an answer, the longest waiting first."""
    rows = _meetings(user).filter(status=Status.PENDING).order_by("booked_at", "pk")
    found = list(rows[: MAX_REQUESTS + 1])
    answered_at = roles.get_permitted_centers(user, CHANGE)
    return [
        _meeting(
            row,
            zones,
            waits=_since(row.booked_at or row.created_at, now),
            lapses=_until(_answer_by(row), now),
            may_answer=answered_at is None or row.room.center_id in answered_at,
        )
        for row in found[:MAX_REQUESTS]
    ], len(found) > MAX_REQUESTS


def _answer_by(row: Reservation) -> dt.datetime:
    """When a request lapses by itself."""
    if row.booked_at is None:
        return row.start
    return min(row.start, row.booked_at + dt.timedelta(hours=settings.PENDING_HOURS))


def _today(user: User, zones: list[str], now: dt.datetime) -> ArrivalsDay:
    """Those of today, by each center's clock, that are not over."""
    rows = _on(user, zones, now, 0).filter(end__gt=now)
    return _day("Today", rows, zones, "Meetings that are over are left out.")


def _tomorrow(user: User, zones: list[str], now: dt.datetime) -> ArrivalsDay:
    return _day("Tomorrow", _on(user, zones, now, 1), zones)


def _on(user: User, zones: list[str], now: dt.datetime, later: int) -> QuerySet[Reservation]:
    """The arrivals of the day so much later than today, which is not everywhere the same day."""

    def span(name: str) -> Span:
        zone = places.get_time_zone(name)
        day = now.astimezone(zone).date() + later * DAY
        return Span(get_local_midnight(day, zone), get_local_midnight(day + DAY, zone))

    return _meetings(user).filter(
        filter_by_local_span(zones, span), status__in=sorted(REVENUE_STATUSES)
    )


def _day(title: str, rows: QuerySet[Reservation], zones: list[str], note: str = "") -> ArrivalsDay:
    found = list(rows.order_by("start", "room__center__name", "pk")[: MAX_ARRIVALS + 1])
    meetings = [_meeting(row, zones) for row in found[:MAX_ARRIVALS]]
    return ArrivalsDay(title, meetings, len(found) > MAX_ARRIVALS, note)


def _meeting(row: Reservation, zones: list[str], **more: Any) -> DashboardReservation:
    center = row.room.center
    start = row.start.astimezone(center.zone)
    return DashboardReservation(
        pk=row.pk,
        day=dates.format_day(start),
        time=dates.format_hours(start, row.end, center.zone),
        zone=f"{start:%Z}" if len(zones) > 1 else "",
        room=row.room.name,
        center=center.name,
        # A name, and nothing more that is personal.
        customer=row.user.get_full_name() or row.user.company_name or f"Customer {row.user_id}",
        people=row.number_of_attendees,
        status=row.status,
        status_label=Status(row.status).label,
        total=money.format_amount(row.total_cost),
        address=_page(row.pk),
        **more,
    )


def _since(moment: dt.datetime, now: dt.datetime) -> str:
    return timesince(moment, now, depth=1).replace("\xa0", " ")


def _until(moment: dt.datetime, now: dt.datetime) -> str:
    if moment <= now:
        return "lapses now"
    return f"lapses in {timeuntil(moment, now, depth=1)}".replace("\xa0", " ")


def _page(reservation: int) -> str:
    return reverse("admin:reservations_reservation_change", args=[reservation])


# --- What needs a person -------------------------------------------------------------------------


def _concerns(user: User, now: dt.datetime) -> Iterator[DashboardAlert]:
    """Money first, what lapses soonest before what waits anyway; then mails."""
    payments = Payment.objects.filter(
        roles.get_center_filter(user, PAYMENTS, "reservation__room__center"),
        reservation__start__gte=now - ALERT_LOOKBACK,
    )
    seen: set[int] = set()
    questions: list[Callable[[], alerts.PaymentAlerts]] = [
        lambda: alerts.find_expiring_authorizations(payments, now=now),
        lambda: alerts.find_lost_authorizations(payments),
        lambda: alerts.find_captured_without_booking(payments),
        lambda: alerts.find_unmet_refund_promises(payments),
        lambda: alerts.find_unmet_reductions(payments),
        lambda: alerts.find_refused_refunds(payments),
        lambda: alerts.find_unresolved_payments(payments, now=now),
    ]
    if roles.has_permission(user, PAYMENTS):
        for ask in questions:
            for payment, what in ask():
                # One is enough to send somebody there.
                if payment.pk not in seen:
                    seen.add(payment.pk)
                    yield _about_payment(payment, what)
    if roles.has_permission(user, DISPUTES):
        disputed = Payment.objects.filter(
            roles.get_center_filter(user, DISPUTES, "reservation__room__center")
        )
        for dispute in alerts.get_open_disputes(disputed)[:MAX_ALERTS]:
            by = f", answer by {dates.format_day(dispute.respond_by)}" if dispute.respond_by else ""
            yield DashboardAlert(
                f"Dispute about {money.format_amount(dispute.amount)}{by}",
                f"Reservation {dispute.payment.reservation_id}: {dispute.reason or dispute.status}",
                reverse("admin:payments_dispute_change", args=[dispute.pk]),
            )
    if roles.has_permission_everywhere(user, MAILS):
        mails = alerts.get_unsent_emails(now=now, since=now - ALERT_LOOKBACK)
        yield from _about_mails(
            list(mails.filter(get_customer_filter(user, "user"))[: MAX_COUNTED_EMAILS + 1])
        )


def _all_well(user: User) -> str:
    """What is said where nothing was found: only of what was looked at."""
    looked_at = []
    if roles.has_permission(user, PAYMENTS):
        looked_at.append("payments")
    if roles.has_permission_everywhere(user, MAILS):
        looked_at.append("mails")
    return f"{' and '.join(looked_at).capitalize()} are as they should be."


def _about_mails(mails: list[OutboxMessage]) -> Iterator[DashboardAlert]:
    if len(mails) > MAX_EMAIL_ALERTS:
        many = (
            f"More than {MAX_COUNTED_EMAILS}"
            if len(mails) > MAX_COUNTED_EMAILS
            else str(len(mails))
        )
        error = next((mail.last_error for mail in mails if mail.last_error), "")
        yield DashboardAlert(
            f"{many} mails are not sent",
            error or "They wait: is send_outbox running?",
            reverse("admin:accounts_outboxmessage_changelist"),
        )
        return
    for mail in mails:
        yield DashboardAlert(
            f"Mail not sent: {mail.kind}",
            ". ".join(filter(None, (mail.about, mail.last_error))) or "It waits.",
            reverse("admin:accounts_outboxmessage_change", args=[mail.pk]),
        )


def _about_payment(payment: Payment, what: str) -> DashboardAlert:
    return DashboardAlert(
        f"{money.format_amount(payment.amount)} of reservation {payment.reservation_id}",
        what[:1].upper() + what[1:],
        _page(payment.reservation_id),
    )


# --- Figures -------------------------------------------------------------------------------------


def _figures(page: Dashboard, user: User, now: dt.datetime) -> None:
    centers = roles.get_permitted_centers(user, SEE)
    mine = Center.objects.filter(roles.get_center_filter(user, SEE, ""))
    if mine[: MAX_CENTERS + 1].count() > MAX_CENTERS:
        page.note = "These are too many centers for this page. The reports have the figures."
        return
    zones = _zones(roles.get_center_filter(user, SEE, ""))
    if not zones:
        return
    # A day that has come at every center.
    today = min(now.astimezone(places.get_time_zone(zone)).date() for zone in zones)
    page.month = _month(centers, today)
    monday = today - today.weekday() * DAY
    week = ReportPeriod(monday, monday + 6 * DAY)
    page.week_title = _told(week)
    try:
        found = utilization.measure_utilization(ReportSelection(week, centers))
    except ReportTooLarge:
        page.note = "These are too many rooms for this page. The reports have the figures."
        return
    share = found.total.share
    page.week_share = "-" if share is None else format_percent(share)
    page.week = charts.build_weekday_chart("Utilization of this week", found.by_weekday())


def _month(centers: frozenset[int] | None, today: dt.date) -> MonthComparison:
    """The month up to today, against as many days of the month before.

    Where that month is shorter, against all of it: then this one is some days ahead, and the
    note says so.
    """
    this = ReportPeriod(today.replace(day=1), today)
    first = (this.first - DAY).replace(day=1)
    days = min(today.day, count_days_in_month(first))
    last = ReportPeriod(first, first + (days - 1) * DAY)
    sums = [revenue.sum_revenue(ReportSelection(each, centers)).revenue for each in (this, last)]
    now, before = sums
    return MonthComparison(
        now=money.format_amount(now),
        before=money.format_amount(before),
        this_period=_told(this),
        last_period=_told(last),
        change=_change(float(now), float(before)),
        is_up=now >= before,
        bars=charts.build_chart(
            "Revenue of the month against the last",
            [
                (dates.format_month(each.first), float(amount), money.format_amount(amount), "")
                for each, amount in zip((this, last), sums, strict=True)
            ],
        ),
        note=f"{dates.format_month(first)} had {days} days only." if days < today.day else "",
    )


def _change(now: float, before: float) -> str:
    if not before:
        return ""
    return f"{(now - before) / before * 100:+.0f}%"


def _told(period: ReportPeriod) -> str:
    return f"{dates.format_day(period.first)} - {dates.format_day(period.last)}"
