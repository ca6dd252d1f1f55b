"""What a timeline shows: the rooms of a center on a day, or a room on the days of a week.

A number of queries that grows with nothing. Of customers only their name is shown.
"""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from centers import hours
from centers.models import Center, Closure, MeetingRoom
from centers.span import Span, get_local_midnight
from reservations.admin.timeline import geometry
from reservations.admin.timeline.geometry import SlotRules, TimelineAxis, TimelineBox, TimelineTick
from reservations.booking.span import MAX_SPAN
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates

DAYS_PER_WEEK = 7
ZERO = dt.timedelta(0)

# Said by a sign as well as by a color.
STATUS_SIGNS = {
    Status.NEW: "✎",
    Status.PROCESSING: "⟳",
    Status.PENDING: "?",
    Status.CONFIRMED: "✓",
    Status.COMPLETED: "■",
    Status.NO_SHOW: "✕",
}
STATUS_LABELS = {Status.NEW: "Draft, held", Status.PENDING: "Request"}


@dataclass(frozen=True, slots=True)
class TimelineViewer:
    """What whoever looks may do at this center, apart from looking."""

    may_add: bool = False
    may_override_hours: bool = False


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Time that cannot be had, or only in part: `kind` is closed, closure, turnaround, blocked."""

    kind: str
    style: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class TimelineBooking:
    """A booking; `label` says all of it to who cannot see where it lies."""

    href: str
    style: str
    status: str
    sign: str
    name: str
    time: str
    label: str
    begins_before: bool
    goes_on: bool
    start: dt.datetime


@dataclass(frozen=True, slots=True)
class TimelineFreeSlot:
    """Free time to start a draft in."""

    href: str
    style: str
    label: str
    time: str
    is_closed: bool
    start: dt.datetime


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A room or a day. `ticks` only where the row's hours are not those of the board's head."""

    title: str
    href: str
    opens: str
    about: str = ""
    note: str = ""
    is_today: bool = False
    now: str = ""
    lines: str = ""
    lanes: int = 1
    ticks: Sequence[TimelineTick] = ()
    marks: Sequence[TimelineMark] = ()
    items: Sequence[TimelineBooking | TimelineFreeSlot] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """`hours` is how long the axis is; `lines` draws its full hours behind the rows."""

    ticks: Sequence[TimelineTick]
    rows: Sequence[TimelineRow]
    hours: float
    lines: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class _TimelineData:
    """What is known of a center for some time."""

    center: Center
    zone: dt.tzinfo
    now: dt.datetime
    viewer: TimelineViewer
    closures: list[Closure]
    bookings: dict[int, list[Reservation]] = field(default_factory=dict)

    def opened(self, day: dt.date) -> list[Span]:
        return list(hours.get_open_spans(day, self.center.opening_hours.all(), self.zone))


def build_day_timeline(
    center: Center,
    day: dt.date,
    *,
    viewer: TimelineViewer,
    whole_day: bool = False,
    now: dt.datetime,
) -> Timeline | None:
    """The rooms of a center on one of its days; None for a day that the place leaves out.

    Rooms that are not active are shown where something is booked in them.
    """
    full = geometry.build_axis(day, center.zone)
    if full is None:
        return None
    rooms = list(center.rooms.all())
    facts = _load_data(center, rooms, full.span, viewer, now)
    shown = [room for room in rooms if room.is_active or facts.bookings.get(room.pk)]
    shown.sort(key=_natural_sort_key)
    axis = full
    if not whole_day:
        axis = _crop_axes([full], facts, shown)[0]
    rows = [
        TimelineRow(
            title=room.name,
            href=_build_url("reservations_room_week", room=room.pk, date=day),
            opens=f"Week of {room.name}",
            about=f"{room.capacity} people",
            note=_describe_room_state(room),
            now=_format_now_style(axis, now),
            **_build_row_content(axis, room, facts),
        )
        for room in shown
    ]
    return Timeline(
        axis.ticks(),
        rows,
        _get_axis_hours(axis),
        _format_hour_lines(axis),
        describe_clock_change(day, center.zone),
    )


def build_week_timeline(
    room: MeetingRoom,
    monday: dt.date,
    *,
    viewer: TimelineViewer,
    whole_day: bool = False,
    now: dt.datetime,
) -> Timeline:
    """A room on seven days; a day that the place leaves out is left out here too."""
    center = room.center
    days = [monday + dt.timedelta(days=number) for number in range(DAYS_PER_WEEK)]
    axes = [axis for day in days if (axis := geometry.build_axis(day, center.zone))]
    facts = _load_data(center, [room], Span(axes[0].span.start, axes[-1].span.end), viewer, now)
    if not whole_day:
        axes = _crop_axes(axes, facts, [room])
    head = _choose_header_axis(axes)
    today = now.astimezone(center.zone).date()
    rows = [
        TimelineRow(
            title=dates.format_day(axis.day),
            href=_build_url("reservations_timeline", center=center.pk, date=axis.day),
            opens=f"{center.name} on this day",
            about=describe_clock_change(axis.day, axis.zone),
            is_today=axis.day == today,
            now=_format_now_style(axis, now),
            **(
                {}
                if _get_tick_positions(axis) == _get_tick_positions(head)
                else _get_row_scale(axis)
            ),
            **_build_row_content(axis, room, facts),
        )
        for axis in axes
    ]
    return Timeline(head.ticks(), rows, _get_axis_hours(head), _format_hour_lines(head))


# What there is


def _load_data(
    center: Center,
    rooms: Sequence[MeetingRoom],
    span: Span,
    viewer: TimelineViewer,
    now: dt.datetime,
) -> _TimelineData:
    closures = center.closures.filter(starts_at__lt=span.end, ends_at__gt=span.start)
    facts = _TimelineData(
        center=center,
        zone=center.zone,
        now=now,
        viewer=viewer,
        closures=list(closures.order_by("starts_at", "pk")),
    )
    widest = max((room.turnaround_minutes for room in rooms), default=0)
    around = span.expand(dt.timedelta(minutes=widest))
    bookings = (
        Reservation.objects.filter(
            room__in=[room.pk for room in rooms],
            # No booking is longer, so that the index need not be read from its beginning.
            start__gt=around.start - MAX_SPAN - dt.timedelta(days=1),
            start__lt=around.end,
            end__gt=around.start,
        )
        .occupying_time(now)
        .select_related("user")
        .only(
            *("room_id", "start", "end", "turnaround_minutes", "status", "hold_until"),
            *("user__first_name", "user__last_name"),
        )
        .order_by("start", "pk")
    )
    by_room = defaultdict(list)
    for booking in bookings:
        by_room[booking.room_id].append(booking)
    facts.bookings.update(by_room)
    return facts


def _crop_axes(
    axes: list[TimelineAxis], facts: _TimelineData, rooms: Sequence[MeetingRoom]
) -> list[TimelineAxis]:
    """The same days, cut to the hours in which the center is open or something is booked."""
    bookings = [each.span for room in rooms for each in facts.bookings.get(room.pk, ())]
    shown = [
        geometry.get_visible_hours(axis.span, axis.zone, [*facts.opened(axis.day), *bookings])
        for axis in axes
    ]
    first, last = min(each[0] for each in shown), max(each[1] for each in shown)
    cut = (geometry.build_axis(axis.day, axis.zone, (first, last)) for axis in axes)
    return [axis for axis in cut if axis]


# A row


def _build_row_content(
    axis: TimelineAxis, room: MeetingRoom, facts: _TimelineData
) -> dict[str, Any]:
    bookings = [
        (each, Span(*_add_turnaround(each, room)))
        for each in facts.bookings.get(room.pk, ())
        if each.span.overlaps(axis.span) or Span(*_add_turnaround(each, room)).overlaps(axis.span)
    ]
    closures = [each for each in facts.closures if each.room_id in {None, room.pk}]
    lanes = geometry.assign_lanes([each.span for each, _ in bookings])
    opened = facts.opened(axis.day)
    marks = [
        *_mark_closed_hours(axis, opened, facts.center),
        *_mark_closures(axis, closures),
        *_mark_turnarounds(axis, bookings),
    ]
    if room.is_blocked:
        marks.append(TimelineMark("blocked", "left:0%;width:100%"))
    items: list[TimelineBooking | TimelineFreeSlot] = [
        bar
        for (booking, _), lane in zip(bookings, lanes, strict=True)
        if (bar := _build_booking(axis, booking, lane, room, facts))
    ]
    taken = [*(span for _, span in bookings), *(each.span for each in closures)]
    items += _build_free_slots(axis, room, opened, taken, facts)
    items.sort(key=lambda item: item.start)
    return {"lanes": max(lanes, default=0) + 1, "marks": marks, "items": items}


def _add_turnaround(booking: Reservation, room: MeetingRoom) -> tuple[dt.datetime, dt.datetime]:
    """The larger of the room's turnaround of today and of the day on which it was booked."""
    turnaround = dt.timedelta(minutes=max(booking.turnaround_minutes, room.turnaround_minutes))
    return booking.start - turnaround, booking.end + turnaround


def _build_booking(
    axis: TimelineAxis, booking: Reservation, lane: int, room: MeetingRoom, facts: _TimelineData
) -> TimelineBooking | None:
    box = axis.box(booking.span)
    if box is None:
        return None
    status = Status(booking.status)
    word = STATUS_LABELS.get(status, status.label)
    if booking.hold_until is not None:
        word += f" until {dates.format_datetime(booking.hold_until, facts.zone)}"
    name = booking.user.get_full_name() or "No name"
    time = geometry.format_span(booking.span, axis)
    return TimelineBooking(
        href=reverse("admin:reservations_reservation_change", args=[booking.pk]),
        style=f"{_format_box_style(box)};--lane:{lane}",
        status=status.value,
        sign=STATUS_SIGNS[status],
        name=name,
        time=time.replace(" - ", "-"),
        label=f"{word}: {name}, {time}, {room.name}, reservation {booking.pk}",
        begins_before=box.begins_before,
        goes_on=box.goes_on,
        start=booking.start,
    )


def _mark_closed_hours(
    axis: TimelineAxis, opened: list[Span], center: Center
) -> Iterator[TimelineMark]:
    kind = "after-hours" if center.is_after_hours_support_enabled else "closed"
    for span in geometry.find_gaps(axis.span, opened):
        yield from _build_mark(axis, span, kind)


def _mark_closures(axis: TimelineAxis, closures: Iterable[Closure]) -> Iterator[TimelineMark]:
    for closure in closures:
        text = f"{closure.reason or 'Closed'}, {geometry.format_span(closure.span, axis)}"
        yield from _build_mark(axis, closure.span, "closure", text)


def _mark_turnarounds(
    axis: TimelineAxis, bookings: list[tuple[Reservation, Span]]
) -> Iterator[TimelineMark]:
    for booking, wide in bookings:
        for start, end in ((wide.start, booking.start), (booking.end, wide.end)):
            if start < end:
                yield from _build_mark(axis, Span(start, end), "turnaround")


def _build_mark(
    axis: TimelineAxis, span: Span, kind: str, text: str = ""
) -> Iterator[TimelineMark]:
    if box := axis.box(span):
        yield TimelineMark(kind, _format_box_style(box), text)


def _build_free_slots(
    axis: TimelineAxis,
    room: MeetingRoom,
    opened: list[Span],
    taken: list[Span],
    facts: _TimelineData,
) -> Iterator[TimelineFreeSlot]:
    if not facts.viewer.may_add or not _is_bookable(axis, room, facts):
        return
    if axis.span.start < facts.now:
        taken = [*taken, Span(axis.span.start, facts.now)]
    steps = SlotRules(
        grid=room.grid_minutes or settings.BOOKING_GRID_MINUTES,
        shortest=(
            settings.BOOKING_MINIMUM_MINUTES
            if room.minimum_minutes is None
            else room.minimum_minutes
        ),
    )
    page = reverse("admin:reservations_reservation_add")
    closed = geometry.find_gaps(axis.span, opened)
    if facts.center.is_after_hours_support_enabled:
        opened, closed = [axis.span], []
    for is_closed, allowed in ((False, opened), (True, closed)):
        if is_closed and not facts.viewer.may_override_hours:
            continue
        others = geometry.find_gaps(axis.span, allowed)
        free = geometry.find_gaps(axis.span, [*taken, *others])
        for slot in geometry.find_slots(axis, free, steps):
            box = axis.box(slot.piece)
            if box is None:
                continue
            start, end = (
                moment.astimezone(facts.zone).replace(tzinfo=None)
                for moment in (slot.proposed.start, slot.proposed.end)
            )
            time = geometry.format_span(slot.proposed, axis)
            label = f"New draft: {room.name}, {dates.format_day(axis.day)}, {time}"
            yield TimelineFreeSlot(
                href=f"{page}?room={room.pk}&start={start:%Y-%m-%dT%H:%M}&end={end:%Y-%m-%dT%H:%M}",
                style=_format_box_style(box),
                label=f"{label} (closed then)" if is_closed else label,
                time=f"{start:%H:%M}",
                is_closed=is_closed,
                start=slot.piece.start,
            )


def _is_bookable(axis: TimelineAxis, room: MeetingRoom, facts: _TimelineData) -> bool:
    """Whether any time of the day could be had: the evaluator says which."""
    days = (
        settings.BOOKING_WINDOW_DAYS
        if room.booking_window_days is None
        else room.booking_window_days
    )
    today = facts.now.astimezone(facts.zone).date()
    return (
        facts.center.is_active
        and room.is_active
        and not room.is_blocked
        and room.rate_id is not None
        and today <= axis.day <= today + dt.timedelta(days=days)
    )


def _describe_room_state(room: MeetingRoom) -> str:
    if not room.is_active:
        return "not active"
    if room.is_blocked:
        return "out of service"
    return "no price" if room.rate_id is None else ""


# Words and places


def _natural_sort_key(room: MeetingRoom) -> list[tuple[int, str]]:
    """Room 2 before Room 10."""
    parts = re.split(r"(\d+)", room.name.casefold())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _format_box_style(box: TimelineBox) -> str:
    return f"left:{box.left:.4f}%;width:{box.width:.4f}%"


def _format_now_style(axis: TimelineAxis, now: dt.datetime) -> str:
    """Where now is, if it is on the axis."""
    on_it = axis.span.start <= now < axis.span.end
    return f"left:{axis.left_of(now):.4f}%" if on_it else ""


def _get_tick_positions(axis: TimelineAxis) -> tuple[tuple[str, str, float], ...]:
    return tuple((tick.label, tick.which, round(tick.left, 3)) for tick in axis.ticks())


def _choose_header_axis(axes: list[TimelineAxis]) -> TimelineAxis:
    """One of those days that have the hours that most of the days have."""
    (most, _), *_ = Counter(map(_get_tick_positions, axes)).most_common(1)
    return next(axis for axis in axes if _get_tick_positions(axis) == most)


def _get_axis_hours(axis: TimelineAxis) -> float:
    return axis.span.duration / geometry.HOUR


def _format_hour_lines(axis: TimelineAxis) -> str:
    """A line at each full hour, as the background of a row."""
    color = "linear-gradient(var(--timeline-line), var(--timeline-line))"
    return ", ".join(f"{color} {tick.left:.4f}% 0 / 1px 100% no-repeat" for tick in axis.ticks())


def _get_row_scale(axis: TimelineAxis) -> dict[str, Any]:
    return {"ticks": axis.ticks(), "lines": _format_hour_lines(axis)}


def describe_clock_change(day: dt.date, zone: dt.tzinfo) -> str:
    """That the clock changes on this day, in words; empty where it does not."""
    start, end = get_local_midnight(day, zone), get_local_midnight(day + dt.timedelta(1), zone)
    change = (end - start) - dt.timedelta(hours=geometry.HOURS_PER_DAY)
    if not change:
        return ""
    minutes = abs(change) // dt.timedelta(minutes=1)
    way = "back" if change > ZERO else "forward"
    return f"The clock goes {way} by {minutes} minutes."


def _build_url(page: str, **query: object) -> str:
    return f"{reverse(f'admin:{page}')}?{urlencode(query)}"
