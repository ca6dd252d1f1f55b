"""Shows staff the reservations that a closure or another setting touches, before they save it.

A closure prevents new bookings. Existing reservations stay as they are: staff have to reschedule
or cancel them, on the page of bookings to resolve (bulk_actions.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from centers import hours
from centers.closure_effects import (
    ClosureEffects,
    closures_planned,
    opening_hours_planned,
    settings_planned,
)
from centers.hours import OpeningInterval
from centers.models import Center, Closure, MeetingRoom
from centers.span import Span
from reservations.desk.bulk_actions import get_closed_bookings_url
from reservations.display import format_customer, format_time_span, get_reservation_url
from reservations.models import Reservation
from reservations.models.querysets import ReservationQuerySet
from roombook import money, places
from roombook.address import POSTAL_FIELDS

MAX_LISTED = 20
# Closures in the WHERE clause of one query.
BATCH_SIZE = 50
IMPOSSIBLE = "These reservations could not take place, and stay as they are: {}."
OUTSIDE_HOURS = "These reservations would be outside the opening hours, and stay as they are: {}."
OTHER_TIMES = (
    "The new time zone changes the times of these reservations: {}. Choose whether they keep their"
    " local times or their instants. The customers get an e-mail."
)


@receiver(closures_planned)
def describe_effects(
    sender: object, *, closures: Sequence[Closure], **_: object
) -> ClosureEffects | None:
    """Name the reservations that hold a room which the closures would close."""
    ids = _find_reservations(closures)
    effects = _describe([("These reservations hold a room at that time: {}.", ids)])
    return effects and effects._replace(url=_get_url(ids, {each.center_id for each in closures}))


@receiver(opening_hours_planned)
def describe_effects_of_hours(
    sender: object, *, center: Center, opening_hours: Sequence[OpeningInterval], **_: object
) -> ClosureEffects | None:
    """Name the reservations to come that are in the opening hours of today, but not in the new."""
    if center.is_after_hours_support_enabled:
        return None
    rows, old_hours = _get_reservations_to_come(center), list(center.opening_hours.all())
    ids = [
        pk
        for pk, span in _find_outside(rows, opening_hours, center)
        if hours.is_open(span, old_hours, center.zone)
    ]
    return _describe([(OUTSIDE_HOURS, ids)])


@receiver(settings_planned)
def describe_effects_of_settings(
    sender: object, *, row: Center | MeetingRoom, changed: set[str], **_: object
) -> ClosureEffects | None:
    """Name the reservations to come that could not take place, or not as the customers know it."""
    former_zone = ""
    if isinstance(row, Center):
        stored = Center.objects.get(pk=row.pk)
        row.normalize()  # Another name of the same state changes nothing.
        changed = {name for name in changed if getattr(row, name) != getattr(stored, name)}
        former_zone = stored.time_zone_id
    return _describe(list(_find_touched(row, changed, former_zone)))


def _find_touched(
    row: Center | MeetingRoom, changed: set[str], former_zone: str
) -> Iterator[tuple[str, list[int]]]:
    """Find what each of the changed settings touches; the text has a place for the reservations."""
    rows = _get_reservations_to_come(row)

    def get_ids(found: ReservationQuerySet = rows) -> list[int]:
        return list(found.values_list("pk", flat=True))

    if "is_active" in changed and not row.is_active:
        yield IMPOSSIBLE, get_ids()
    if changed & set(POSTAL_FIELDS):
        yield "The customers of these reservations know the former address: {}.", get_ids()
    if isinstance(row, MeetingRoom):
        if "is_blocked" in changed and row.is_blocked:
            yield IMPOSSIBLE, get_ids()
        if "capacity" in changed:
            text = "The room would be too small for these reservations, which stay as they are: {}."
            yield text, get_ids(rows.filter(number_of_attendees__gt=row.capacity))
        return
    if "is_after_hours_support_enabled" in changed and not row.is_after_hours_support_enabled:
        outside = _find_outside(rows, row.opening_hours.all(), row)
        yield OUTSIDE_HOURS, [pk for pk, _ in outside]
    if "time_zone_id" in changed and places.is_time_zone(row.time_zone_id):
        touched = rows.touched_by_time_zone(row, former_zone, timezone.now())
        yield OTHER_TIMES, get_ids(touched)


def _get_reservations_to_come(row: Center | MeetingRoom) -> ReservationQuerySet:
    now = timezone.now()
    rows = Reservation.objects.active_holds(now).filter(start__gt=now).order_by("pk")
    return rows.filter(**{"room" if isinstance(row, MeetingRoom) else "room__center": row.pk})


def _find_outside(
    rows: ReservationQuerySet, opening_hours: Iterable[OpeningInterval], center: Center
) -> Iterator[tuple[int, Span]]:
    for pk, start, end in rows.filter(hours_override_reason="").values_list("pk", "start", "end"):
        if not hours.is_open(span := Span(start, end), opening_hours, center.zone):
            yield pk, span


def _describe(touched: Sequence[tuple[str, list[int]]]) -> ClosureEffects | None:
    found = [(text, ids) for text, ids in touched if ids]
    if not found:
        return None
    texts = ((format_html(text, _render_links(ids)),) for text, ids in found)
    key = sha256(repr(found).encode()).hexdigest()
    return ClosureEffects(format_html_join(" ", "{}", texts), key, url="")


def _get_url(ids: Sequence[int], centers: set[int]) -> str:
    """The page that moves or cancels the bookings; empty if none of the reservations is one."""
    if not Reservation.objects.to_come(timezone.now()).filter(pk__in=ids).exists():
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
