"""Warns staff about reservations in a closure that they save.

A closure prevents new bookings. Existing reservations stay as they are: staff have to move or
cancel them.
"""

from django.contrib import messages
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from centers.models import Closure
from centers.models.schedule import closure_saved
from reservations.admin.formatting import format_datetime, get_reservation_url
from reservations.models import Reservation

MAX_LISTED = 20


@receiver(closure_saved)
def warn_about_reservations(
    sender: object, *, closure: Closure, request: HttpRequest, **_: object
) -> None:
    """List the reservations that hold a room that is now closed."""
    rows = (
        Reservation.objects.active_holds(timezone.now())
        .filter(room__center=closure.center_id)
        .between(closure.starts_at, closure.ends_at)
        .select_related("room__center", "user")
        .order_by("start", "pk")
    )
    if closure.room_id is not None:
        rows = rows.filter(room=closure.room_id)
    if not (count := rows.count()):
        return
    links = format_html_join(
        "; ",
        '<a href="{}">{}</a> ({}, {}, {})',
        (
            (
                get_reservation_url(row.pk),
                row,
                row.room.name,
                format_datetime(row, row.start),
                row.user,
            )
            for row in rows[:MAX_LISTED]
        ),
    )
    more = f"; and {count - MAX_LISTED} more" if count > MAX_LISTED else ""
    text = "The closure is saved, but these reservations hold a room during it: {}{}."
    messages.warning(request, format_html(text, links, more))
