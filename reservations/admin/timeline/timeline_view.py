"""The data of a timeline: the rooms of a center on a day, or the days of a week of a room.

The number of queries does not depend on the number of rooms and bookings. Of customers, only the
names are shown.
"""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict
from urllib.parse import urlencode

from django.urls import reverse

from centers import hours
from centers.models import Center, Closure, MeetingRoom
from centers.requested_span import MAX_SPAN
from centers.span import Span, find_gaps, get_local_midnight
from reservations.admin.formatting import get_reservation_url
from reservations.admin.timeline import geometry
from reservations.admin.timeline.free_slots import (
    TimelineFreeSlot,
    TimelineOptions,
    find_free_slots,
)
from reservations.admin.timeline.geometry import TimelineAxis, TimelineTick
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates

DAYS_PER_WEEK = 7

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
    """A booking; ``label`` describes it for screen readers."""

    href: str
    style: str
    status: str
    sign: str
    name: str
    time: str
    label: str
    starts_before: bool
    ends_after: bool
    start: dt.datetime


class TimelineRowContent(TypedDict):
    lanes: int
    marks: Sequence[TimelineMark]
    items: Sequence[TimelineBooking | TimelineFreeSlot]


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A room or a day. ``ticks`` only if its hours differ from those of the header."""

    title: str
    href: str
    link_title: str
    subtitle: str = ""
    note: str = ""
    is_today: bool = False
    now_style: str = ""
    hour_lines: str = ""
    lanes: int = 1
    ticks: Sequence[TimelineTick] = ()
    marks: Sequence[TimelineMark] = ()
    items: Sequence[TimelineBooking | TimelineFreeSlot] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """``hours`` is the length of the axis; ``hour_lines`` draws the full hours behind the rows."""

    ticks: Sequence[TimelineTick]
    rows: Sequence[TimelineRow]
    hours: float
    hour_lines: str
    note: str = ""


def build_day_timeline(center: Center, day: dt.date, options: TimelineOptions) -> Timeline | None:
    """The rooms of a center on a local day; None for a day that the time zone skipped.

    Inactive rooms are shown only if they are booked on that day.
    """
    axis = geometry.build_axis(day, center.zone)
    if axis is None:
        return None
    data = _TimelineData(center, list(center.rooms.all()), axis.span, options)
    rooms = [room for room in data.rooms if room.is_active or data.bookings[room.pk]]
    rooms.sort(key=_get_natural_sort_key)
    [axis] = data.crop([axis], rooms)
    rows = [
        TimelineRow(
            title=room.name,
            href=_build_url("reservations_room_week", room=room.pk, date=day),
            link_title=f"Week of {room.name}",
            subtitle=f"{room.capacity} people",
            note=_describe_room_state(room),
            now_style=_format_now_style(axis, options.now),
            **data.build_row_content(axis, room),
        )
        for room in rooms
    ]
    note = describe_clock_change(day, center.zone)
    return Timeline(axis.get_ticks(), rows, _get_hours(axis), _format_hour_lines(axis), note)


def build_week_timeline(room: MeetingRoom, monday: dt.date, options: TimelineOptions) -> Timeline:
    """A room on seven days; without a day that the time zone skipped."""
    center = room.center
    days = (monday + dt.timedelta(days=number) for number in range(DAYS_PER_WEEK))
    axes = [axis for day in days if (axis := geometry.build_axis(day, center.zone))]
    span = Span(axes[0].span.start, axes[-1].span.end)
    data = _TimelineData(center, [room], span, options)
    axes = data.crop(axes, [room])
    header = _choose_header_axis(axes)
    today = options.now.astimezone(center.zone).date()
    rows = []
    for axis in axes:
        row = TimelineRow(
            title=dates.format_day(axis.day),
            href=_build_url("reservations_timeline", center=center.pk, date=axis.day),
            link_title=f"{center.name} on this day",
            subtitle=describe_clock_change(axis.day, axis.zone),
            is_today=axis.day == today,
            now_style=_format_now_style(axis, options.now),
            **data.build_row_content(axis, room),
        )
        if _get_tick_positions(axis) != _get_tick_positions(header):
            row = replace(row, ticks=axis.get_ticks(), hour_lines=_format_hour_lines(axis))
        rows.append(row)
    return Timeline(header.get_ticks(), rows, _get_hours(header), _format_hour_lines(header))


class _TimelineData:
    """The bookings and closures of some rooms of a center within a span."""

    def __init__(
        self, center: Center, rooms: list[MeetingRoom], span: Span, options: TimelineOptions
    ) -> None:
        self.center, self.zone, self.rooms = center, center.zone, rooms
        self.options = options
        closures = center.closures.overlapping(span.start, span.end)
        self.closures = list(closures.order_by("starts_at", "pk"))
        self.bookings: dict[int, list[Reservation]] = defaultdict(list)
        for booking in self._get_bookings(span):
            self.bookings[booking.room_id].append(booking)

    def _get_bookings(self, span: Span) -> Iterable[Reservation]:
        turnaround = max((room.turnaround_minutes for room in self.rooms), default=0)
        around = span.expand(dt.timedelta(minutes=turnaround))
        return (
            Reservation.objects.filter(
                room__in=[room.pk for room in self.rooms],
                # No booking is longer, so the index is not read from its beginning.
                start__gt=around.start - MAX_SPAN - dt.timedelta(days=1),
                start__lt=around.end,
                end__gt=around.start,
            )
            .occupying_time(self.options.now)
            .select_related("user")
            .only(
                *("room_id", "start", "end", "turnaround_minutes", "status", "hold_until"),
                *("user__first_name", "user__last_name"),
            )
            .order_by("start", "pk")
        )

    def _get_open_spans(self, day: dt.date) -> list[Span]:
        return list(hours.get_open_spans(day, self.center.opening_hours.all(), self.zone))

    def crop(self, axes: list[TimelineAxis], rooms: Sequence[MeetingRoom]) -> list[TimelineAxis]:
        """Crop the axes to the hours in which the center is open or something is booked.

        Unless the user wants to see the whole day.
        """
        if self.options.whole_day:
            return axes
        bookings = [booking.span for room in rooms for booking in self.bookings[room.pk]]
        visible = [
            geometry.get_visible_hours(
                axis.span, axis.zone, [*self._get_open_spans(axis.day), *bookings]
            )
            for axis in axes
        ]
        hours = (min(first for first, _ in visible), max(last for _, last in visible))
        cropped = (geometry.build_axis(axis.day, axis.zone, hours) for axis in axes)
        return [axis for axis in cropped if axis]

    def build_row_content(self, axis: TimelineAxis, room: MeetingRoom) -> TimelineRowContent:
        """The lanes, marks and items of a row."""
        bookings = [
            (booking, blocked)
            for booking in self.bookings[room.pk]
            if (blocked := _add_turnaround(booking, room)).overlaps(axis.span)
        ]
        closures = [closure for closure in self.closures if closure.room_id in {None, room.pk}]
        open_spans = self._get_open_spans(axis.day)
        lanes = geometry.assign_lanes([booking.span for booking, _ in bookings])
        items: list[TimelineBooking | TimelineFreeSlot] = [
            self._build_booking(axis, booking, lane, room)
            for (booking, _), lane in zip(bookings, lanes, strict=True)
            if booking.span.overlaps(axis.span)
        ]
        taken = [*(blocked for _, blocked in bookings), *(closure.span for closure in closures)]
        items += find_free_slots(axis, room, open_spans, taken, self.options)
        items.sort(key=lambda item: item.start)
        marks = [
            *self._mark_closed_hours(axis, open_spans),
            *_mark_closures(axis, closures),
            *_mark_turnarounds(axis, bookings),
        ]
        if room.is_blocked:
            marks.append(TimelineMark("blocked", "left:0%;width:100%"))
        return {"lanes": max(lanes, default=0) + 1, "marks": marks, "items": items}

    def _build_booking(
        self, axis: TimelineAxis, booking: Reservation, lane: int, room: MeetingRoom
    ) -> TimelineBooking:
        status = Status(booking.status)
        label = status.label
        if booking.hold_until is not None:
            label += f", held until {dates.format_datetime(booking.hold_until, self.zone)}"
        name = booking.user.get_full_name() or "No name"
        time = geometry.format_span(booking.span, axis).replace(" - ", "-")
        return TimelineBooking(
            href=get_reservation_url(booking.pk),
            style=f"{axis.format_style(booking.span)};--lane:{lane}",
            status=status.value,
            sign=STATUS_SIGNS[status],
            name=name,
            time=time,
            # It contains the visible text, so that it can be spoken to select the link.
            label=f"{label}: {name} {time}, {room.name}, reservation {booking.pk}",
            starts_before=booking.start < axis.span.start,
            ends_after=booking.end > axis.span.end,
            start=booking.start,
        )

    def _mark_closed_hours(
        self, axis: TimelineAxis, open_spans: list[Span]
    ) -> Iterator[TimelineMark]:
        kind = "after-hours" if self.center.is_after_hours_support_enabled else "closed"
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


def _describe_room_state(room: MeetingRoom) -> str:
    if not room.is_active:
        return "not active"
    if room.is_blocked:
        return "out of service"
    return "no price" if room.rate_id is None else ""


def _get_natural_sort_key(room: MeetingRoom) -> list[tuple[int, str]]:
    """Sorts Room 2 before Room 10."""
    parts = re.split(r"(\d+)", room.name.casefold())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _format_now_style(axis: TimelineAxis, now: dt.datetime) -> str:
    """The position of the current time, or "" if it is not on the axis."""
    is_on_axis = axis.span.start <= now < axis.span.end
    return f"left:{axis.get_left(now):.4f}%" if is_on_axis else ""


def _get_tick_positions(axis: TimelineAxis) -> tuple[tuple[str, str, float], ...]:
    return tuple((tick.label, tick.zone_name, round(tick.left, 3)) for tick in axis.get_ticks())


def _choose_header_axis(axes: list[TimelineAxis]) -> TimelineAxis:
    """An axis with the hours that most days have."""
    (most_common, _), *_ = Counter(map(_get_tick_positions, axes)).most_common(1)
    return next(axis for axis in axes if _get_tick_positions(axis) == most_common)


def _get_hours(axis: TimelineAxis) -> float:
    return axis.span.duration / geometry.HOUR


def _format_hour_lines(axis: TimelineAxis) -> str:
    """A CSS background with a line at each full hour."""
    color = "linear-gradient(var(--timeline-line), var(--timeline-line))"
    return ", ".join(
        f"{color} {tick.left:.4f}% 0 / 1px 100% no-repeat" for tick in axis.get_ticks()
    )


def describe_clock_change(day: dt.date, zone: dt.tzinfo) -> str:
    """A note if the clocks change on this day, else ""."""
    start, end = get_local_midnight(day, zone), get_local_midnight(day + dt.timedelta(1), zone)
    change = (end - start) - dt.timedelta(hours=geometry.HOURS_PER_DAY)
    if not change:
        return ""
    minutes = abs(change) // dt.timedelta(minutes=1)
    direction = "back" if change > dt.timedelta() else "forward"
    return f"The clock goes {direction} by {minutes} minutes."


def _build_url(page: str, **query: object) -> str:
    return f"{reverse(f'admin:{page}')}?{urlencode(query)}"
