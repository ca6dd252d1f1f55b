"""The free time of a room on a timeline, in which staff can start a new reservation."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from centers.models import MeetingRoom
from centers.rooms import get_booking_rules
from centers.span import Span, find_gaps
from reservations.admin.timeline import geometry
from reservations.admin.timeline.geometry import TimelineAxis
from roombook import dates


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """How a timeline is shown, and what its user may do at the center apart from seeing it."""

    now: dt.datetime
    whole_day: bool
    can_add: bool
    can_change: bool
    can_override_hours: bool


@dataclass(frozen=True, slots=True)
class TimelineFreeSlot:
    """A link to a new reservation at a free time."""

    href: str
    style: str
    label: str
    is_closed: bool
    start: dt.datetime


def find_free_slots(
    axis: TimelineAxis,
    room: MeetingRoom,
    open_spans: list[Span],
    taken: list[Span],
    options: TimelineOptions,
) -> Iterator[TimelineFreeSlot]:
    """The free slots of a room; outside opening hours only if the user can override them."""
    page = get_new_reservation_url(axis, room, options)
    if not page:
        return
    if axis.span.start < options.now:
        taken = [*taken, Span(axis.span.start, options.now)]
    closed_spans = find_gaps(axis.span, open_spans)
    if room.center.is_after_hours_support_enabled:
        open_spans, closed_spans = [axis.span], []
    for is_closed, unavailable in ((False, closed_spans), (True, open_spans)):
        if is_closed and not options.can_override_hours:
            continue
        free = find_gaps(axis.span, [*taken, *unavailable])
        for slot in geometry.find_slots(axis, free, get_booking_rules(room)):
            start, end = slot.proposed.to_local(axis.zone)
            time = geometry.format_span(slot.proposed, axis)
            label = f"New draft: {room.name}, {dates.format_day(axis.day)}, {time}"
            yield TimelineFreeSlot(
                href=f"{page}&start={start:%Y-%m-%dT%H:%M}&end={end:%Y-%m-%dT%H:%M}",
                style=axis.format_style(slot.piece),
                label=f"{label} (outside opening hours)" if is_closed else label,
                is_closed=is_closed,
                start=slot.piece.start,
            )


def get_new_reservation_url(axis: TimelineAxis, room: MeetingRoom, options: TimelineOptions) -> str:
    """The page of a new reservation of the room; "" if the user can make none on that day."""
    if not options.can_add or not _is_bookable(axis, room, options.now):
        return ""
    return f"{reverse('admin:reservations_reservation_add')}?room={room.pk}"


def _is_bookable(axis: TimelineAxis, room: MeetingRoom, now: dt.datetime) -> bool:
    """Whether any time of the day may be available; the evaluator decides about each."""
    today = now.astimezone(axis.zone).date()
    return (
        room.center.is_active
        and room.is_active
        and not room.is_blocked
        and room.rate_id is not None
        and today <= axis.day <= get_booking_rules(room).get_last_day(now, axis.zone)
    )
