"""What a customer can book instead of a time that is taken (B11.6)."""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import TextChoices

from centers import hours
from centers.geo import get_distance_in_miles
from centers.models import Center, MeetingRoom
from centers.models.price_list import load_special_prices
from centers.querysets import SearchCircle
from centers.rooms import get_booking_rules
from centers.span import Span
from reservations.availability import RoomCalendar, load_calendars
from reservations.pricing.quote import calculate_quote
from reservations.pricing.services import ServiceSelection
from roombook.errors import RateNotConfigured
from roombook.money import ZERO

if TYPE_CHECKING:
    from accounts.models import User

RADIUS_IN_MILES = 5
# What is read at most: the nearest centers, and of their rooms the smallest that are large enough.
MAX_CENTERS = 50
MAX_ROOMS = 500
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
    """What the customer wants, and when they ask.

    `people` fit into what is found; by default, as many as into the room, which is not stored if
    any room will do. `by_staff`: what has just begun is free too.
    """

    room: MeetingRoom
    span: Span
    services: Sequence[ServiceSelection]
    user: "User | None"
    now: dt.datetime
    people: int | None = None
    by_staff: bool = False


def find_alternatives(search: AlternativeSearch, *, limit: int) -> list[Alternative]:
    """Return at most `limit` alternatives, the best first; by at most twelve queries.

    Other rooms of the center that are as large; the room itself at other times; as large rooms of
    other centers nearby, unless a service is selected, because services belong to a center.
    """
    found = chain(find_at_center(search, has_other_times=True), find_other_centers(search))
    return list(islice(found, limit))


def find_at_center(search: AlternativeSearch, *, has_other_times: bool) -> Iterator[Alternative]:
    """Yield as large rooms of the center at the same time and, if wanted, the room's next times."""
    rooms = load_large_rooms(search, [search.room.center_id])
    calendars = load_calendars(rooms, search.span, user=search.user, now=search.now)
    yield from price_available(search, rooms, calendars, AlternativeReason.OTHER_ROOM)
    if has_other_times:
        yield from find_other_times(search)


def find_other_times(search: AlternativeSearch) -> Iterator[Alternative]:
    """Yield the nearest start before and the nearest one after; the earlier one at a tie."""
    room, span = search.room, search.span
    around = span.expand(NEAR_TIMES)
    calendar = load_calendars([room], around, user=search.user, now=search.now)[room.pk]
    zone, slot_minutes = room.center.zone, get_booking_rules(room).slot_minutes
    nearest = []
    for round_to_slot, direction in ((hours.round_down_to_slot, -1), (hours.round_up_to_slot, 1)):
        start = round_to_slot(span.start + direction * INSTANT, zone, slot_minutes)
        while abs(start - span.start) <= NEAR_TIMES:
            other = Span(start, start + span.duration)
            if calendar.is_available(other, now=search.now, by_staff=search.by_staff):
                nearest.append(other)
                break
            start = round_to_slot(start + direction * INSTANT, zone, slot_minutes)
    for other in sorted(nearest, key=lambda each: (abs(each.start - span.start), each.start)):
        yield from price_alternative(search, room, other, AlternativeReason.OTHER_TIME)


def find_other_centers(search: AlternativeSearch) -> Iterator[Alternative]:
    """Yield as large rooms of other centers nearby at the same time, the nearest center first."""
    middle = search.room.center.coordinates
    if middle is None or search.services:
        return
    centers = Center.objects.active().within(SearchCircle.around(middle, RADIUS_IN_MILES))
    others = centers.exclude(pk=search.room.center_id).only("latitude", "longitude")
    found = [
        (round(Decimal(get_distance_in_miles(middle, center.coordinates)), 2), center.pk)
        for center in others
        if center.coordinates
    ]
    distances = {pk: distance for distance, pk in nsmallest(MAX_CENTERS, found)}
    rooms = load_large_rooms(search, distances)
    rooms.sort(key=lambda room: distances[room.center_id])
    calendars = load_calendars(rooms, search.span, user=search.user, now=search.now)
    # The rooms of farther centers are priced only if those before them are not enough.
    for distance, nearby in groupby(rooms, key=lambda room: distances[room.center_id]):
        yield from price_available(
            search, nearby, calendars, AlternativeReason.OTHER_CENTER, distance
        )


def load_large_rooms(search: AlternativeSearch, centers: Collection[int]) -> list[MeetingRoom]:
    """Load the other rooms of the centers that are large enough, the smallest first."""
    people = search.people or search.room.capacity
    rooms = MeetingRoom.objects.on_offer().filter(center__in=list(centers), capacity__gte=people)
    rooms = rooms.exclude(pk=search.room.pk).select_related("center", "rate")
    found = list(rooms.order_by("capacity", "pk")[:MAX_ROOMS])
    load_special_prices([room.rate for room in found if room.rate])
    return found


def price_available(
    search: AlternativeSearch,
    rooms: Iterable[MeetingRoom],
    calendars: Mapping[int, RoomCalendar],
    reason: AlternativeReason,
    distance: Decimal = ZERO,
) -> list[Alternative]:
    """Return those of the rooms that are available at the same time, the cheapest first."""
    found = [
        alternative
        for room in rooms
        if calendars[room.pk].is_available(search.span, now=search.now, by_staff=search.by_staff)
        for alternative in price_alternative(search, room, search.span, reason, distance)
    ]
    return sorted(found, key=lambda each: (each.total, each.room_id))


def price_alternative(
    search: AlternativeSearch,
    room: MeetingRoom,
    span: Span,
    reason: AlternativeReason,
    distance: Decimal = ZERO,
) -> Iterator[Alternative]:
    """Yield the alternative with its price as Reservation cost has it; nothing without a price."""
    try:
        total = calculate_quote(room, span, services=search.services).total
    except RateNotConfigured:
        return
    zone = room.center.zone
    yield Alternative(
        room.pk,
        room.center_id,
        span.start.astimezone(zone),
        span.end.astimezone(zone),
        total,
        distance,
        reason,
    )
