"""Find a room: the free rooms for some people and a time, with their prices, the cheapest first.

They are the alternatives that customers get (B11.6). Choosing one opens a new reservation; where a
form says that a room is not available, it changes the form.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Max, QuerySet
from django.http import QueryDict
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminIntegerFieldWidget

from accounts import roles
from accounts.models import User
from centers import hours
from centers.models import Center, MeetingRoom
from centers.rooms import get_default_booking_rules
from centers.span import Span
from reservations.alternatives import (
    Alternative,
    AlternativeReason,
    AlternativeSearch,
    find_at_center,
    find_other_centers,
    load_large_rooms,
    price_alternative,
)
from reservations.availability import load_calendars
from reservations.desk.forms import CenterForm, LocalTimeField, localize_input
from reservations.free_times import find_next_bookings
from roombook import dates, money

MAX_ROOMS, MAX_OTHERS = 20, 5
# Reasons that say more to staff than to customers, and the same for each room.
DETAILED_REASONS = {"closed", "closure", "past", "too-far-ahead"}


@dataclass(frozen=True, slots=True)
class FoundRoom:
    """A free room, and the local time at which it is free."""

    room: MeetingRoom
    start: dt.datetime
    end: dt.datetime
    time: str
    price: str
    # Of another center: its name, and how far away it is.
    elsewhere: str

    @property
    def query(self) -> str:
        """The part of the URL that fills it in in a new reservation."""
        times = {"start": f"{self.start:%Y-%m-%dT%H:%M}", "end": f"{self.end:%Y-%m-%dT%H:%M}"}
        return urlencode({"room": self.room.pk, **times})

    @property
    def choice(self) -> str:
        """The value of the button that chooses it, which `read_choice` reads."""
        times = (f"{at:%Y-%m-%d %H:%M}" for at in (self.start, self.end))
        return f"{self.room.center_id} {self.room.pk} {' '.join(times)}"


@dataclass(frozen=True, slots=True)
class FoundRooms:
    """What is free at the time or, with the reasons why nothing is, what is free instead."""

    rooms: list[FoundRoom]
    reasons: list[str]


def find_rooms(search: AlternativeSearch, staff: User, permission: str) -> FoundRooms:
    """Find the rooms that staff with this permission can offer."""
    has_other_times = search.room.pk is not None
    found = list(islice(find_at_center(search, has_other_times=has_other_times), MAX_ROOMS))
    if any(each.reason == AlternativeReason.OTHER_ROOM for each in found):
        return FoundRooms(list(_describe(search, found)), [])
    rooms = load_large_rooms(search, [search.room.center_id])
    reasons = _explain(search, rooms)
    elsewhere = list(islice(find_other_centers(search), MAX_ROOMS))
    found += _find_next_times(search, rooms)
    if rooms and not found:
        reasons.append("Nothing is free within three weeks either.")
    permitted = [
        each for each in elsewhere if roles.has_permission(staff, permission, each.center_id)
    ]
    found += permitted[:MAX_OTHERS]
    return FoundRooms(list(_describe(search, found)), reasons)


def _find_next_times(
    search: AlternativeSearch, rooms: Sequence[MeetingRoom]
) -> Iterable[Alternative]:
    """The next times as long as the wanted one, the soonest first."""
    following = find_next_bookings(rooms, user=search.user, now=search.now, wanted=search.span)
    soonest = sorted(following, key=lambda each: (each[1].start, each[0].pk))[:MAX_OTHERS]
    return chain.from_iterable(
        price_alternative(search, room, span, AlternativeReason.OTHER_TIME)
        for room, span in soonest
    )


def _explain(search: AlternativeSearch, rooms: Sequence[MeetingRoom]) -> list[str]:
    """Why none of the rooms that are large enough is free."""
    if not rooms:
        others = MeetingRoom.objects.on_offer().filter(center=search.room.center_id)
        largest = others.exclude(pk=search.room.pk).aggregate(Max("capacity"))["capacity__max"]
        people = search.people or search.room.capacity
        rest = f"the largest one holds {largest}" if largest else "none has a price"
        return [f"No other room for {people} people: {rest}."]
    names = defaultdict(list)
    calendars = load_calendars(rooms, search.span, user=search.user, now=search.now)
    for calendar in calendars.values():
        found = calendar.find_reasons(search.span, now=search.now, by_staff=search.by_staff)
        for reason in islice(found, 1):
            is_detailed = reason.code in DETAILED_REASONS
            names[reason.staff_text if is_detailed else reason.message].append(calendar.room.name)
    return [f"{', '.join(each)}: {text}" for text, each in names.items()]


def _describe(search: AlternativeSearch, found: Sequence[Alternative]) -> Iterator[FoundRoom]:
    rooms = MeetingRoom.objects.select_related("center").in_bulk({each.room_id for each in found})
    for each in found:
        room = rooms[each.room_id]
        zone = room.center.zone
        is_elsewhere = each.reason == AlternativeReason.OTHER_CENTER
        is_that_day = each.start.date() == search.span.start.astimezone(zone).date()
        format_time = dates.format_hours if is_that_day else dates.format_span
        yield FoundRoom(
            room,
            each.start,
            each.end,
            format_time(each.start, each.end, zone),
            money.format_amount(each.total),
            f"{room.center.name}, {each.distance_in_miles} miles" if is_elsewhere else "",
        )


def read_choice(data: QueryDict) -> QueryDict:
    """The data of a form with the center, room and times of the row that was chosen, if any."""
    parts = data.get("choose", "").split()
    names = ("center", "room", "start_0", "start_1", "end_0", "end_1")
    if len(parts) != len(names):
        return data
    chosen = data.copy()
    for name, value in zip(names, parts, strict=True):
        chosen[name] = value
    return chosen


class FindRoomForm(CenterForm):
    """For how many people, from when, and how long. By default for one, now, for an hour."""

    people = forms.IntegerField(
        min_value=1, max_value=100_000, widget=UnfoldAdminIntegerFieldWidget()
    )
    start = LocalTimeField(label="From")
    duration = forms.DecimalField(
        label="Hours",
        min_value=Decimal("0.01"),
        max_value=31 * 24,
        decimal_places=2,
        widget=UnfoldAdminDecimalFieldWidget({"step": "any"}),
    )

    def __init__(
        self, query: QueryDict, centers: QuerySet[Center], center: Center | None, now: dt.datetime
    ) -> None:
        data: dict[str, Any] = {"people": 1, "duration": 1, "center": center and center.pk}
        if center:
            slot = get_default_booking_rules().slot_minutes
            start = hours.round_down_to_slot(now, center.zone, slot).astimezone(center.zone)
            data |= {"start_0": f"{start:%Y-%m-%d}", "start_1": f"{start:%H:%M}"}
        super().__init__({**data, **query.dict()}, auto_id="find-%s", centers=centers)

    def find(self, staff: User, *, now: dt.datetime) -> FoundRooms | None:
        """What is free, or None if the form has errors."""
        if not self.is_valid():
            return None
        data = self.cleaned_data
        try:
            start = localize_input(data["start"], data["center"])
        except forms.ValidationError as error:
            self.add_error("start", error)
            return None
        span = Span(start, start + dt.timedelta(hours=float(data["duration"])))
        wanted = MeetingRoom(center=data["center"], capacity=data["people"])
        search = AlternativeSearch(wanted, span, (), None, now, by_staff=True)
        return find_rooms(search, staff, roles.ADD_RESERVATION)
