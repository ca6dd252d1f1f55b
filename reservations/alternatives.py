"""What a customer can book instead of a time that is taken (B11.6)."""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import TextChoices

from centers import hours
from centers.geo import Coordinates, miles_from_squared_chord
from centers.models import Center, MeetingRoom
from centers.querysets import SearchCircle
from centers.rooms import get_booking_rules
from centers.span import Span
from reservations import availability
from reservations.pricing.quote import calculate_quote
from reservations.pricing.services import ServiceSelection
from reservations.room_calendars import RoomCalendar, load_calendars
from roombook.errors import RateNotConfigured

if TYPE_CHECKING:
    from accounts.models import User

RADIUS_IN_MILES = 5
NEAR_TIMES = dt.timedelta(hours=24)
INSTANT = dt.timedelta(microseconds=1)


class AlternativeReason(TextChoices):
    OTHER_ROOM = "OtherRoom"
    OTHER_TIME = "OtherTime"
    OTHER_CENTER = "OtherCenter"


class Alternative(NamedTuple):
    """A bookable room and time, in the center's local time, with its price."""

    room_id: int
    center_id: int
    start: dt.datetime
    end: dt.datetime
    total: Decimal
    distance_in_miles: Decimal
    reason: AlternativeReason


class AlternativeSearch(NamedTuple):
    """What the customer wants, and when they ask."""

    room: MeetingRoom
    span: Span
    services: Sequence[ServiceSelection]
    user: "User"
    now: dt.datetime


def find_alternatives(search: AlternativeSearch, *, limit: int) -> list[Alternative]:
    """Return at most `limit` alternatives, the best first; by at most nine queries.

    Other rooms of the center that are as large; the room itself at other times; as large rooms of
    other centers nearby, unless a service is selected, because services belong to a center.
    """
    found = chain(_find_other_rooms(search), _find_other_times(search), _find_other_centers(search))
    return list(islice(found, limit))


def _find_other_rooms(search: AlternativeSearch) -> Iterator[Alternative]:
    rooms = _load_large_rooms(search, [search.room.center_id])
    found = _price_available(search, rooms, AlternativeReason.OTHER_ROOM)
    yield from sorted(found, key=lambda each: (each.total, each.room_id))


def _find_other_times(search: AlternativeSearch) -> Iterator[Alternative]:
    """Yield the nearest start before and the nearest one after; the earlier one at a tie."""
    room, span = search.room, search.span
    around = span.expand(NEAR_TIMES)
    calendar = load_calendars([room], around, user=search.user, now=search.now)[room.pk]
    spans = [
        found
        for starts in (_list_starts(room, span, before=True), _list_starts(room, span))
        if (found := _find_available(search, starts, calendar))
    ]
    for found in sorted(spans, key=lambda each: (abs(each.start - span.start), each.start)):
        alternative = _build_alternative(search, room, found, AlternativeReason.OTHER_TIME)
        if alternative:
            yield alternative


def _list_starts(room: MeetingRoom, span: Span, *, before: bool = False) -> Iterator[dt.datetime]:
    """Yield the starts on the room's grid within 24 hours, the nearest first."""
    zone, slot = room.center.zone, get_booking_rules(room).slot_minutes
    if before:
        start = hours.round_down_to_slot(span.start - INSTANT, zone, slot)
        while start >= span.start - NEAR_TIMES:
            yield start
            start = hours.round_down_to_slot(start - INSTANT, zone, slot)
    else:
        start = hours.round_up_to_slot(span.start + INSTANT, zone, slot)
        while start <= span.start + NEAR_TIMES:
            yield start
            start = hours.round_up_to_slot(start + INSTANT, zone, slot)


def _find_available(
    search: AlternativeSearch, starts: Iterable[dt.datetime], calendar: RoomCalendar
) -> Span | None:
    spans = (Span(start, start + search.span.duration) for start in starts)
    return next(
        (
            span
            for span in spans
            if availability.is_available(search.room, span, calendar, now=search.now)
        ),
        None,
    )


def _find_other_centers(search: AlternativeSearch) -> Iterator[Alternative]:
    middle = search.room.center.coordinates
    if middle is None or search.services:
        return
    centers = (
        Center.objects.active()
        .exclude(pk=search.room.center_id)
        .within(SearchCircle.around(middle, RADIUS_IN_MILES))
    )
    distances = {
        pk: _get_distance(middle, Coordinates(latitude, longitude))
        for pk, latitude, longitude in centers.values_list("pk", "latitude", "longitude")
        if latitude is not None and longitude is not None
    }
    rooms = _load_large_rooms(search, distances)
    found = _price_available(search, rooms, AlternativeReason.OTHER_CENTER, distances)
    yield from sorted(found, key=lambda each: (each.distance_in_miles, each.total, each.room_id))


def _get_distance(one: Coordinates, other: Coordinates) -> Decimal:
    squared_chord = sum((a - b) ** 2 for a, b in zip(one.vector, other.vector, strict=True))
    return round(Decimal(miles_from_squared_chord(squared_chord)), 2)


def _load_large_rooms(search: AlternativeSearch, centers: Collection[int]) -> list[MeetingRoom]:
    rooms = MeetingRoom.objects.on_offer().filter(
        center__in=list(centers), capacity__gte=search.room.capacity
    )
    return list(rooms.exclude(pk=search.room.pk).select_related("center", "rate"))


def _price_available(
    search: AlternativeSearch,
    rooms: Sequence[MeetingRoom],
    reason: AlternativeReason,
    distances: "dict[int, Decimal] | None" = None,
) -> Iterator[Alternative]:
    calendars = load_calendars(rooms, search.span, user=search.user, now=search.now)
    for room in rooms:
        if availability.is_available(room, search.span, calendars[room.pk], now=search.now):
            distance = (distances or {}).get(room.center_id, Decimal(0))
            alternative = _build_alternative(search, room, search.span, reason, distance)
            if alternative:
                yield alternative


def _build_alternative(
    search: AlternativeSearch,
    room: MeetingRoom,
    span: Span,
    reason: AlternativeReason,
    distance: Decimal = Decimal(0),
) -> Alternative | None:
    """Return the alternative with its price as Reservation cost has it; None without a price."""
    try:
        total = calculate_quote(room, span, services=search.services).total
    except RateNotConfigured:
        return None
    zone = room.center.zone
    return Alternative(
        room.pk,
        room.center_id,
        span.start.astimezone(zone),
        span.end.astimezone(zone),
        total,
        distance,
        reason,
    )
