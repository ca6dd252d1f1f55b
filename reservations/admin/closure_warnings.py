"""Shows staff the reservations in a closure, before and after they save it.

A closure prevents new bookings. Existing reservations stay as they are: staff have to reschedule
or cancel them.
"""

from collections.abc import Sequence
from hashlib import sha256

from django.contrib import messages
from django.db.models import Q
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from centers.closure_effects import ClosureEffects, closures_planned
from centers.models import Closure
from centers.models.schedule import closure_saved
from reservations.admin.formatting import format_customer, format_time_span, get_reservation_url
from reservations.models import Reservation

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
    return ClosureEffects(html, key=sha256(repr(ids).encode()).hexdigest())


@receiver(closure_saved)
def warn_about_reservations(
    sender: object, *, closure: Closure, request: HttpRequest, **_: object
) -> None:
    """List the reservations that hold a room that is now closed."""
    if ids := _find_reservations([closure]):
        text = "The closure is saved, but these reservations hold a room during it: {}."
        messages.warning(request, format_html(text, _render_links(ids)))


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
        '<a class="underline" href="{}">{}</a> ({}, {}, {})',
        (
            (
                get_reservation_url(row.pk),
                row,
                row.room.name,
                format_time_span(row),
                format_customer(row),
            )
            for row in rows.filter(pk__in=ids)[:MAX_LISTED]
        ),
    )
    more = len(ids) - MAX_LISTED
    return format_html("{}; and {} more", links, more) if more > 0 else links
