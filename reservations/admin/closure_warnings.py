"""Shows staff the reservations in a closure, or outside new opening hours, before they save it.

A closure prevents new bookings. Existing reservations stay as they are: staff have to reschedule
or cancel them, on the page of bookings in closures (closed_bookings.py).
"""

from collections.abc import Sequence
from hashlib import sha256

from django.contrib import messages
from django.db.models import Q
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from centers import hours
from centers.closure_effects import ClosureEffects, closures_planned, opening_hours_planned
from centers.hours import OpeningInterval
from centers.models import Center, Closure
from centers.models.schedule import closure_saved
from centers.span import Span
from reservations.admin.closed_bookings import get_closed_bookings_url
from reservations.admin.formatting import format_customer, format_time_span, get_reservation_url
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import money

MAX_LISTED = 20
# Closures in the WHERE clause of one query.
BATCH_SIZE = 50


@receiver(closures_planned)
def describe_effects(
    sender: object, *, closures: Sequence[Closure], **_: object
) -> ClosureEffects | None:
    """Name the reservations that hold a room which the closures would close."""
    ids = _find_reservations(closures)
    if not ids:
        return None
    html = format_html("These reservations hold a room at that time: {}.", _render_links(ids))
    return ClosureEffects(html, _get_key(ids), _get_url(ids, {each.center_id for each in closures}))


@receiver(opening_hours_planned)
def describe_effects_of_hours(
    sender: object, *, center: Center, opening_hours: Sequence[OpeningInterval], **_: object
) -> ClosureEffects | None:
    """Name the reservations to come that are in the opening hours of today, but not in the new."""
    if center.is_after_hours_support_enabled:
        return None
    now, old_hours = timezone.now(), list(center.opening_hours.all())
    rows = Reservation.objects.active_holds(now).filter(room__center=center, start__gt=now)
    spans = rows.order_by("pk").values_list("pk", "start", "end")
    ids = [
        pk
        for pk, start, end in spans
        if hours.is_open(span := Span(start, end), old_hours, center.zone)
        and not hours.is_open(span, opening_hours, center.zone)
    ]
    if not ids:
        return None
    text = "These reservations would be outside the opening hours, and stay as they are: {}."
    return ClosureEffects(format_html(text, _render_links(ids)), _get_key(ids), url="")


def _get_key(ids: Sequence[int]) -> str:
    return sha256(repr(ids).encode()).hexdigest()


@receiver(closure_saved)
def warn_about_reservations(
    sender: object, *, closure: Closure, request: HttpRequest, **_: object
) -> None:
    """List the reservations that hold a room that is now closed."""
    ids = _find_reservations([closure])
    if not ids:
        return
    text = "The closure is saved, but these reservations hold a room during it: {}."
    message = format_html(text, _render_links(ids))
    if url := _get_url(ids, {closure.center_id}):
        link = '{} <a class="underline" href="{}">Move or cancel them</a>'
        message = format_html(link, message, url)
    messages.warning(request, message)


def _get_url(ids: Sequence[int], centers: set[int]) -> str:
    """The page that moves or cancels the bookings; empty if none of the reservations is one."""
    bookings = Reservation.objects.filter(
        pk__in=ids, status__in=[Status.PENDING, Status.CONFIRMED], start__gt=timezone.now()
    )
    if not bookings.exists():
        return ""
    return get_closed_bookings_url(centers.pop() if len(centers) == 1 else None)


def _find_reservations(closures: Sequence[Closure]) -> list[int]:
    """The ids of the reservations that hold a room during one of the closures."""
    active = Reservation.objects.active_holds(timezone.now()).order_by()
    ids: set[int] = set()
    for first in range(0, len(closures), BATCH_SIZE):
        conditions = Q()
        for each in closures[first : first + BATCH_SIZE]:
            room = {"room": each.room_id} if each.room_id else {"room__center": each.center_id}
            conditions |= Q(**room, start__lt=each.ends_at, end__gt=each.starts_at)
        ids |= set(active.filter(conditions).values_list("pk", flat=True))
    return sorted(ids)


def _render_links(ids: Sequence[int]) -> str:
    """Links to the reservations that start first."""
    rows = Reservation.objects.select_related("room__center", "user").order_by("start", "pk")
    links = format_html_join(
        "; ",
        '<a class="underline" href="{}">{}</a> ({}, {}, {}, {})',
        (
            (
                get_reservation_url(row.pk),
                row,
                row.room.name,
                format_time_span(row),
                format_customer(row),
                money.format_amount(row.total_cost),
            )
            for row in rows.filter(pk__in=ids)[:MAX_LISTED]
        ),
    )
    more = len(ids) - MAX_LISTED
    return format_html("{}; and {} more", links, more) if more > 0 else links
