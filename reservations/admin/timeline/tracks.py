"""The tracks of a timeline: the bookings, free slots and closed times of a room on a day."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse

from centers.models import Closure, MeetingRoom
from centers.rooms import get_booking_rules
from centers.span import Span, find_gaps
from reservations.admin.actions.change_actions import RescheduleAction
from reservations.admin.formatting import get_reservation_url
from reservations.admin.timeline import geometry
from reservations.admin.timeline.free_slots import (
    TimelineFreeSlot,
    find_free_slots,
    get_new_reservation_url,
)
from reservations.admin.timeline.geometry import TimelineAxis, TimelineTick
from reservations.admin.timeline.timeline_data import TimelineData
from reservations.booking import amendments
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates

# Statuses are distinguished by a sign as well as by color.
STATUS_SIGNS = {
    Status.NEW: "✎",
    Status.PROCESSING: "⟳",
    Status.PENDING: "?",
    Status.CONFIRMED: "✓",
    Status.COMPLETED: "■",
    Status.NO_SHOW: "✕",
}


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Time that cannot be booked, or only in part.

    ``kind`` is closed, after-hours, closure, turnaround or blocked.
    """

    kind: str
    style: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class TimelineBooking:
    """A booking; ``label`` describes it for screen readers.

    Only a booking that can be rescheduled here has a ``move_url``. ``first`` and ``last`` are its
    minutes on the axis, and ``version`` shows whether the page is stale.
    """

    href: str
    style: str
    status: str
    status_label: str
    sign: str
    name: str
    time: str
    label: str
    starts_before: bool
    ends_after: bool
    start: dt.datetime
    move_url: str
    first: int
    last: int
    version: int


@dataclass(frozen=True, slots=True)
class TimelineTrack:
    """A room on a day. ``ticks`` only if its hours differ from those of the header.

    The rest is for the script: the length of the axis in ``minutes``, its ``clock`` (JSON, see
    ``TimelineAxis.get_clock``), the time slots of the room, and the address of a new reservation,
    or "" if the user can make none.
    """

    label: str
    room_id: int
    minutes: int
    clock: str
    slot_minutes: int
    new_url: str
    lanes: int
    marks: Sequence[TimelineMark]
    items: Sequence[TimelineBooking | TimelineFreeSlot]
    now_style: str
    ticks: Sequence[TimelineTick] = ()
    hour_lines: str = ""


def build_track(
    data: TimelineData, axis: TimelineAxis, room: MeetingRoom, *, has_free_slots: bool = True
) -> TimelineTrack:
    """The track of a room on the day of the axis."""
    bookings = [
        (booking, blocked)
        for booking in data.bookings[room.pk]
        if (blocked := _add_turnaround(booking, room)).overlaps(axis.span)
    ]
    closures = [closure for closure in data.closures if closure.room_id in {None, room.pk}]
    open_spans = data.get_open_spans(axis.day)
    lanes = geometry.assign_lanes([booking.span for booking, _ in bookings])
    items: list[TimelineBooking | TimelineFreeSlot] = [
        _build_booking(data, axis, booking, lane, room)
        for (booking, _), lane in zip(bookings, lanes, strict=True)
        if booking.span.overlaps(axis.span)
    ]
    if has_free_slots:
        taken = [*(blocked for _, blocked in bookings), *(closure.span for closure in closures)]
        items += find_free_slots(axis, room, open_spans, taken, data.options)
    items.sort(key=lambda item: item.start)
    marks = [
        *_mark_closed_hours(data, axis, open_spans),
        *_mark_closures(axis, closures),
        *_mark_turnarounds(axis, bookings),
    ]
    if room.is_blocked:
        marks.append(TimelineMark("blocked", "left:0%;width:100%"))
    return TimelineTrack(
        label=f"{room.name}, {dates.format_day(axis.day)}",
        room_id=room.pk,
        minutes=axis.span.duration // geometry.MINUTE,
        clock=json.dumps(axis.get_clock(), separators=(",", ":")),
        slot_minutes=get_booking_rules(room).slot_minutes,
        new_url=get_new_reservation_url(axis, room, data.options),
        lanes=max(lanes, default=0) + 1,
        marks=marks,
        items=items,
        now_style=_format_now_style(axis, data.options.now),
    )


def _build_booking(
    data: TimelineData, axis: TimelineAxis, booking: Reservation, lane: int, room: MeetingRoom
) -> TimelineBooking:
    status = Status(booking.status)
    label = status_label = "Checked in" if booking.is_checked_in else status.label
    if booking.holds_for_id is not None:
        label = "Held for its change"
    if booking.hold_until is not None:
        label += f", held until {dates.format_datetime(booking.hold_until, axis.zone)}"
    name = booking.user.get_full_name() or "No name"
    time = geometry.format_span(booking.span, axis).replace(" - ", "-")
    starts_before = booking.start < axis.span.start
    ends_after = booking.end > axis.span.end
    # A slot that is held for a change belongs to its booking.
    reservation_id = booking.holds_for_id or booking.pk
    can_move = (
        data.options.can_change
        and booking.holds_for_id is None
        and not starts_before
        and not ends_after
        and amendments.can_reschedule(booking, now=data.options.now)
    )
    return TimelineBooking(
        href=get_reservation_url(reservation_id),
        style=f"{axis.format_style(booking.span)};--lane:{lane}",
        status=status.value,
        status_label=status_label,
        sign=STATUS_SIGNS[status],
        name=name,
        time=time,
        # It contains the visible text, so that it can be spoken to select the link.
        label=f"{name} {time} {label}, {room.name}, reservation {reservation_id}",
        starts_before=starts_before,
        ends_after=ends_after,
        start=booking.start,
        move_url=_get_move_url(booking.pk) if can_move else "",
        first=(booking.start - axis.span.start) // geometry.MINUTE,
        last=(booking.end - axis.span.start) // geometry.MINUTE,
        version=booking.version,
    )


def _get_move_url(reservation_id: int) -> str:
    args = (reservation_id, RescheduleAction.name)
    return reverse("admin:reservations_reservation_action", args=args)


def _mark_closed_hours(
    data: TimelineData, axis: TimelineAxis, open_spans: list[Span]
) -> Iterator[TimelineMark]:
    kind = "after-hours" if data.center.is_after_hours_support_enabled else "closed"
    for span in find_gaps(axis.span, open_spans):
        yield from _mark(axis, span, kind)


def _add_turnaround(booking: Reservation, room: MeetingRoom) -> Span:
    """The booking with the room's turnaround of today or of its booking, whichever is longer."""
    minutes = max(booking.turnaround_minutes, room.turnaround_minutes)
    return booking.span.expand(dt.timedelta(minutes=minutes))


def _mark_closures(axis: TimelineAxis, closures: Iterable[Closure]) -> Iterator[TimelineMark]:
    for closure in closures:
        text = f"{closure.reason or 'Closed'}, {geometry.format_span(closure.span, axis)}"
        yield from _mark(axis, closure.span, "closure", text)


def _mark_turnarounds(
    axis: TimelineAxis, bookings: list[tuple[Reservation, Span]]
) -> Iterator[TimelineMark]:
    for booking, blocked in bookings:
        for start, end in ((blocked.start, booking.start), (booking.end, blocked.end)):
            if start < end:
                yield from _mark(axis, Span(start, end), "turnaround")


def _mark(axis: TimelineAxis, span: Span, kind: str, text: str = "") -> Iterator[TimelineMark]:
    if axis.span.overlaps(span):
        yield TimelineMark(kind, axis.format_style(span), text)


def _format_now_style(axis: TimelineAxis, now: dt.datetime) -> str:
    """The position of the current time, or "" if it is not on the axis."""
    is_on_axis = axis.span.start <= now < axis.span.end
    return f"left:{axis.get_left(now):.4f}%" if is_on_axis else ""
