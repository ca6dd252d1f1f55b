"""The timelines: the rooms of a center on a day or in a week, and a room in a week.

Each is created with the data that it shows, which says whether anything has changed; ``build`` then
builds the rows.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from centers.models import Center, MeetingRoom
from centers.span import Span, get_local_midnight
from reservations.admin.timeline import geometry
from reservations.admin.timeline.free_slots import TimelineOptions
from reservations.admin.timeline.geometry import TimelineAxis, TimelineTick
from reservations.admin.timeline.timeline_data import TimelineData
from reservations.admin.timeline.tracks import TimelineTrack, build_track
from roombook import dates

DAYS_PER_WEEK = 7


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A room or a day, with a track; a room on several days has a track for each."""

    title: str
    href: str
    link_title: str
    tracks: Sequence[TimelineTrack]
    subtitle: str = ""
    note: str = ""
    is_today: bool = False


@dataclass(frozen=True, slots=True)
class TimelineColumn:
    """A day of a center, as the head of a column."""

    title: str
    href: str
    note: str
    is_today: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """``hours`` is the length of the axis; ``hour_lines`` draws the full hours behind the rows.

    Either there are ``columns``, or hours at the head.
    """

    rows: Sequence[TimelineRow]
    hours: float
    ticks: Sequence[TimelineTick] = ()
    hour_lines: str = ""
    note: str = ""
    columns: Sequence[TimelineColumn] = ()


class CenterDayTimeline:
    """The timeline of the rooms of a center on a local day that exists.

    Inactive rooms are shown only if they are booked on that day.
    """

    def __init__(self, center: Center, axis: TimelineAxis, options: TimelineOptions) -> None:
        self.axis = axis
        self.data = TimelineData(center, list(center.rooms.all()), axis.span, options)

    def build(self) -> Timeline:
        rooms = _get_shown_rooms(self.data)
        [axis] = self.data.crop([self.axis], rooms)
        rows = [
            _build_room_row(room, axis.day, [build_track(self.data, axis, room)]) for room in rooms
        ]
        return Timeline(
            rows,
            _get_hours(axis),
            axis.get_ticks(),
            _format_hour_lines(axis),
            describe_clock_change(axis.day, axis.zone),
        )


class RoomWeekTimeline:
    """The timeline of a room on seven days; without a day that the time zone skipped."""

    def __init__(self, room: MeetingRoom, monday: dt.date, options: TimelineOptions) -> None:
        self.room = room
        self.axes = _build_week_axes(room.center, monday)
        self.data = TimelineData(room.center, [room], _get_span(self.axes), options)

    def build(self) -> Timeline:
        axes = self.data.crop(self.axes, [self.room])
        header = _choose_header_axis(axes)
        rows = []
        for axis in axes:
            track = build_track(self.data, axis, self.room)
            if _get_tick_positions(axis) != _get_tick_positions(header):
                lines = _format_hour_lines(axis)
                track = replace(track, ticks=axis.get_ticks(), hour_lines=lines)
            column = _build_column(self.data, axis)
            rows.append(
                TimelineRow(
                    title=column.title,
                    href=column.href,
                    link_title=f"{self.room.center.name} on this day",
                    subtitle=column.note,
                    is_today=column.is_today,
                    tracks=[track],
                )
            )
        return Timeline(rows, _get_hours(header), header.get_ticks(), _format_hour_lines(header))


class CenterWeekTimeline:
    """The timeline of the rooms of a center on seven days, without links in the free time."""

    def __init__(self, center: Center, monday: dt.date, options: TimelineOptions) -> None:
        self.monday = monday
        self.axes = _build_week_axes(center, monday)
        self.data = TimelineData(center, list(center.rooms.all()), _get_span(self.axes), options)

    def build(self) -> Timeline:
        rooms = _get_shown_rooms(self.data)
        axes = self.data.crop(self.axes, rooms)
        rows = []
        for room in rooms:
            tracks = [build_track(self.data, axis, room, has_free_slots=False) for axis in axes]
            rows.append(_build_room_row(room, self.monday, tracks))
        columns = [_build_column(self.data, axis) for axis in axes]
        return Timeline(rows, _get_hours(axes[0]), columns=columns)


def _build_week_axes(center: Center, monday: dt.date) -> list[TimelineAxis]:
    days = (monday + dt.timedelta(days=number) for number in range(DAYS_PER_WEEK))
    return [axis for day in days if (axis := geometry.build_axis(day, center.zone))]


def _get_span(axes: Sequence[TimelineAxis]) -> Span:
    return Span(axes[0].span.start, axes[-1].span.end)


def _get_shown_rooms(data: TimelineData) -> list[MeetingRoom]:
    """The active rooms and those that are booked."""
    rooms = [room for room in data.rooms if room.is_active or data.bookings[room.pk]]
    return sorted(rooms, key=_get_natural_sort_key)


def _build_room_row(
    room: MeetingRoom, day: dt.date, tracks: Sequence[TimelineTrack]
) -> TimelineRow:
    return TimelineRow(
        title=room.name,
        href=_build_url("reservations_room_week", room=room.pk, date=day),
        link_title=f"Week of {room.name}",
        subtitle=f"{room.capacity} people",
        note=_describe_room_state(room),
        tracks=tracks,
    )


def _build_column(data: TimelineData, axis: TimelineAxis) -> TimelineColumn:
    return TimelineColumn(
        title=dates.format_day(axis.day),
        href=_build_url("reservations_timeline", center=data.center.pk, date=axis.day),
        note=describe_clock_change(axis.day, axis.zone),
        is_today=axis.day == data.options.now.astimezone(axis.zone).date(),
    )


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
