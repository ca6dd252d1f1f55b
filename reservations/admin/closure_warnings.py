"""A closure keeps new bookings out; those that are there already are for staff to look after."""

from typing import Any

from django.contrib import messages
from django.dispatch import receiver
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from centers.models import Closure
from centers.signals import closure_saved
from reservations.admin.formatting import format_datetime
from reservations.models import Reservation

MAX_LISTED = 20


@receiver(closure_saved)
def warn_about_reservations(
    sender: Any, *, closure: Closure, request: HttpRequest, **_: Any
) -> None:
    """Tell staff which reservations hold their room while it is now closed; none is touched."""
    held = (
        Reservation.objects.active_holds(timezone.now())
        .filter(room__center=closure.center_id)
        .between(closure.starts_at, closure.ends_at)
        .select_related("room__center", "user")
        .order_by("start", "pk")
    )
    if closure.room_id is not None:
        held = held.filter(room=closure.room_id)
    if not (count := held.count()):
        return
    told = format_html_join("; ", '<a href="{}">{}</a> ({}, {}, {})', map(_row, held[:MAX_LISTED]))
    more = f"; and {count - MAX_LISTED} more" if count > MAX_LISTED else ""
    text = "This closure is saved, but these reservations hold their room in it: {}{}."
    messages.warning(request, format_html(text, told, more))


def _row(reservation: Reservation) -> tuple[Any, ...]:
    start = format_datetime(reservation, reservation.start)
    page = reverse("admin:reservations_reservation_change", args=[reservation.pk])
    return page, reservation, reservation.room.name, start, reservation.user
