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
from centers.span import Span, midnight
from reservations.admin.timeline import geometry
from reservations.admin.timeline.geometry import Axis, Box, Steps, Tick
from reservations.booking.span import LONGEST
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates

DAYS_OF_A_WEEK = 7
NOTHING = dt.timedelta(0)

# Said by a sign as well as by a color.
SIGNS = {
    Status.NEW: "✎",
    Status.PROCESSING: "⟳",
    Status.PENDING: "?",
    Status.CONFIRMED: "✓",
    Status.COMPLETED: "■",
    Status.NO_SHOW: "✕",
}
WORDS = {Status.NEW: "Draft, held", Status.PENDING: "Request"}


@dataclass(frozen=True, slots=True)
class Viewer:
    """What whoever looks may do at this center, apart from looking."""

    may_add: bool = False
    may_override_hours: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Time that cannot be had, or only in part: `kind` is closed, closure, turnaround, blocked."""

    kind: str
    style: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
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
class Offer:
    """Free time to start a draft in."""

    href: str
    style: str
    label: str
    time: str
    is_closed: bool
    start: dt.datetime


@dataclass(frozen=True, slots=True)
class Row:
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
    ticks: Sequence[Tick] = ()
    marks: Sequence[Mark] = ()
    items: Sequence[Bar | Offer] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """`hours` is how long the axis is; `lines` draws its full hours behind the rows."""

    ticks: Sequence[Tick]
    rows: Sequence[Row]
    hours: float
    lines: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of a center for some time."""

    center: Center
    zone: dt.tzinfo
    now: dt.datetime
    viewer: Viewer
    closures: list[Closure]
    bookings: dict[int, list[Reservation]] = field(default_factory=dict)

    def opened(self, day: dt.date) -> list[Span]:
        return list(hours.opened_on(day, self.center.opening_hours.all(), self.zone))


def of_day(
    center: Center,
    day: dt.date,
    *,
    viewer: Viewer,
    whole_day: bool = False,
    now: dt.datetime,
) -> Board | None:
    """The rooms of a center on one of its days; None for a day that the place leaves out.

    Rooms that are not active are shown where something is booked in them.
    """
    full = geometry.axis_of(day, center.zone)
    if full is None:
        return None
    rooms = list(center.rooms.all())
    facts = _facts(center, rooms, full.span, viewer, now)
    shown = [room for room in rooms if room.is_active or facts.bookings.get(room.pk)]
    shown.sort(key=_by_name)
    axis = full
    if not whole_day:
        axis = _cropped([full], facts, shown)[0]
    rows = [
        Row(
            title=room.name,
            href=_address("reservations_room_week", room=room.pk, date=day),
            opens=f"Week of {room.name}",
            about=f"{room.capacity} people",
            note=_note(room),
            now=_line(axis, now),
            **_content(axis, room, facts),
        )
        for room in shown
    ]
    return Board(axis.ticks(), rows, _hours(axis), _lines(axis), change_of_clock(day, center.zone))


def of_week(
    room: MeetingRoom,
    monday: dt.date,
    *,
    viewer: Viewer,
    whole_day: bool = False,
    now: dt.datetime,
) -> Board:
    """A room on seven days; a day that the place leaves out is left out here too."""
    center = room.center
    days = [monday + dt.timedelta(days=number) for number in range(DAYS_OF_A_WEEK)]
    axes = [axis for day in days if (axis := geometry.axis_of(day, center.zone))]
    facts = _facts(center, [room], Span(axes[0].span.start, axes[-1].span.end), viewer, now)
    if not whole_day:
        axes = _cropped(axes, facts, [room])
    head = _usual(axes)
    today = now.astimezone(center.zone).date()
    rows = [
        Row(
            title=dates.day(axis.day),
            href=_address("reservations_timeline", center=center.pk, date=axis.day),
            opens=f"{center.name} on this day",
            about=change_of_clock(axis.day, axis.zone),
            is_today=axis.day == today,
            now=_line(axis, now),
            **({} if _places(axis) == _places(head) else _own_scale(axis)),
            **_content(axis, room, facts),
        )
        for axis in axes
    ]
    return Board(head.ticks(), rows, _hours(head), _lines(head))


# What there is


def _facts(
    center: Center, rooms: Sequence[MeetingRoom], span: Span, viewer: Viewer, now: dt.datetime
) -> _Facts:
    closures = center.closures.filter(starts_at__lt=span.end, ends_at__gt=span.start)
    facts = _Facts(
        center=center,
        zone=center.zone,
        now=now,
        viewer=viewer,
        closures=list(closures.order_by("starts_at", "pk")),
    )
    widest = max((room.turnaround_minutes for room in rooms), default=0)
    around = span.widened(dt.timedelta(minutes=widest))
    bookings = (
        Reservation.objects.filter(
            room__in=[room.pk for room in rooms],
            # No booking is longer, so that the index need not be read from its beginning.
            start__gt=around.start - LONGEST - dt.timedelta(days=1),
            start__lt=around.end,
            end__gt=around.start,
        )
        .taking_time(now)
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


def _cropped(axes: list[Axis], facts: _Facts, rooms: Sequence[MeetingRoom]) -> list[Axis]:
    """The same days, cut to the hours in which the center is open or something is booked."""
    bookings = [each.span for room in rooms for each in facts.bookings.get(room.pk, ())]
    shown = [
        geometry.hours_shown(axis.span, axis.zone, [*facts.opened(axis.day), *bookings])
        for axis in axes
    ]
    first, last = min(each[0] for each in shown), max(each[1] for each in shown)
    cut = (geometry.axis_of(axis.day, axis.zone, (first, last)) for axis in axes)
    return [axis for axis in cut if axis]


# A row


def _content(axis: Axis, room: MeetingRoom, facts: _Facts) -> dict[str, Any]:
    bookings = [
        (each, Span(*_with_turnaround(each, room)))
        for each in facts.bookings.get(room.pk, ())
        if each.span.overlaps(axis.span) or Span(*_with_turnaround(each, room)).overlaps(axis.span)
    ]
    closures = [each for each in facts.closures if each.room_id in {None, room.pk}]
    lanes = geometry.lanes([each.span for each, _ in bookings])
    opened = facts.opened(axis.day)
    marks = [
        *_hours_marks(axis, opened, facts.center),
        *_closure_marks(axis, closures),
        *_turnaround_marks(axis, bookings),
    ]
    if room.is_blocked:
        marks.append(Mark("blocked", "left:0%;width:100%"))
    items: list[Bar | Offer] = [
        bar
        for (booking, _), lane in zip(bookings, lanes, strict=True)
        if (bar := _bar(axis, booking, lane, room, facts))
    ]
    taken = [*(span for _, span in bookings), *(each.span for each in closures)]
    items += _offers(axis, room, opened, taken, facts)
    items.sort(key=lambda item: item.start)
    return {"lanes": max(lanes, default=0) + 1, "marks": marks, "items": items}


def _with_turnaround(booking: Reservation, room: MeetingRoom) -> tuple[dt.datetime, dt.datetime]:
    """The larger of the room's turnaround of today and of the day on which it was booked."""
    turnaround = dt.timedelta(minutes=max(booking.turnaround_minutes, room.turnaround_minutes))
    return booking.start - turnaround, booking.end + turnaround


def _bar(
    axis: Axis, booking: Reservation, lane: int, room: MeetingRoom, facts: _Facts
) -> Bar | None:
    box = axis.box(booking.span)
    if box is None:
        return None
    status = Status(booking.status)
    word = WORDS.get(status, status.label)
    if booking.hold_until is not None:
        word += f" until {dates.moment(booking.hold_until, facts.zone)}"
    name = booking.user.get_full_name() or "No name"
    time = geometry.told(booking.span, axis)
    return Bar(
        href=reverse("admin:reservations_reservation_change", args=[booking.pk]),
        style=f"{_style(box)};--lane:{lane}",
        status=status.value,
        sign=SIGNS[status],
        name=name,
        time=time.replace(" - ", "-"),
        label=f"{word}: {name}, {time}, {room.name}, reservation {booking.pk}",
        begins_before=box.begins_before,
        goes_on=box.goes_on,
        start=booking.start,
    )


def _hours_marks(axis: Axis, opened: list[Span], center: Center) -> Iterator[Mark]:
    kind = "after-hours" if center.is_after_hours_support_enabled else "closed"
    for span in geometry.gaps(axis.span, opened):
        yield from _mark(axis, span, kind)


def _closure_marks(axis: Axis, closures: Iterable[Closure]) -> Iterator[Mark]:
    for closure in closures:
        text = f"{closure.reason or 'Closed'}, {geometry.told(closure.span, axis)}"
        yield from _mark(axis, closure.span, "closure", text)


def _turnaround_marks(axis: Axis, bookings: list[tuple[Reservation, Span]]) -> Iterator[Mark]:
    for booking, wide in bookings:
        for start, end in ((wide.start, booking.start), (booking.end, wide.end)):
            if start < end:
                yield from _mark(axis, Span(start, end), "turnaround")


def _mark(axis: Axis, span: Span, kind: str, text: str = "") -> Iterator[Mark]:
    if box := axis.box(span):
        yield Mark(kind, _style(box), text)


def _offers(
    axis: Axis, room: MeetingRoom, opened: list[Span], taken: list[Span], facts: _Facts
) -> Iterator[Offer]:
    if not facts.viewer.may_add or not _can_be_booked(axis, room, facts):
        return
    if axis.span.start < facts.now:
        taken = [*taken, Span(axis.span.start, facts.now)]
    steps = Steps(
        grid=room.grid_minutes or settings.BOOKING_GRID_MINUTES,
        shortest=(
            settings.BOOKING_MINIMUM_MINUTES
            if room.minimum_minutes is None
            else room.minimum_minutes
        ),
    )
    page = reverse("admin:reservations_reservation_add")
    closed = geometry.gaps(axis.span, opened)
    if facts.center.is_after_hours_support_enabled:
        opened, closed = [axis.span], []
    for is_closed, allowed in ((False, opened), (True, closed)):
        if is_closed and not facts.viewer.may_override_hours:
            continue
        others = geometry.gaps(axis.span, allowed)
        free = geometry.gaps(axis.span, [*taken, *others])
        for slot in geometry.slots(axis, free, steps):
            box = axis.box(slot.piece)
            if box is None:
                continue
            start, end = (
                moment.astimezone(facts.zone).replace(tzinfo=None)
                for moment in (slot.proposed.start, slot.proposed.end)
            )
            time = geometry.told(slot.proposed, axis)
            label = f"New draft: {room.name}, {dates.day(axis.day)}, {time}"
            yield Offer(
                href=f"{page}?room={room.pk}&start={start:%Y-%m-%dT%H:%M}&end={end:%Y-%m-%dT%H:%M}",
                style=_style(box),
                label=f"{label} (closed then)" if is_closed else label,
                time=f"{start:%H:%M}",
                is_closed=is_closed,
                start=slot.piece.start,
            )


def _can_be_booked(axis: Axis, room: MeetingRoom, facts: _Facts) -> bool:
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


def _note(room: MeetingRoom) -> str:
    if not room.is_active:
        return "not active"
    if room.is_blocked:
        return "out of service"
    return "no price" if room.rate_id is None else ""


# Words and places


def _by_name(room: MeetingRoom) -> list[tuple[int, str]]:
    """Room 2 before Room 10."""
    parts = re.split(r"(\d+)", room.name.casefold())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _style(box: Box) -> str:
    return f"left:{box.left:.4f}%;width:{box.width:.4f}%"


def _line(axis: Axis, now: dt.datetime) -> str:
    """Where now is, if it is on the axis."""
    on_it = axis.span.start <= now < axis.span.end
    return f"left:{axis.left_of(now):.4f}%" if on_it else ""


def _places(axis: Axis) -> tuple[tuple[str, str, float], ...]:
    return tuple((tick.label, tick.which, round(tick.left, 3)) for tick in axis.ticks())


def _usual(axes: list[Axis]) -> Axis:
    """One of those days that have the hours that most of the days have."""
    (most, _), *_ = Counter(map(_places, axes)).most_common(1)
    return next(axis for axis in axes if _places(axis) == most)


def _hours(axis: Axis) -> float:
    return axis.span.duration / geometry.HOUR


def _lines(axis: Axis) -> str:
    """A line at each full hour, as the background of a row."""
    color = "linear-gradient(var(--timeline-line), var(--timeline-line))"
    return ", ".join(f"{color} {tick.left:.4f}% 0 / 1px 100% no-repeat" for tick in axis.ticks())


def _own_scale(axis: Axis) -> dict[str, Any]:
    return {"ticks": axis.ticks(), "lines": _lines(axis)}


def change_of_clock(day: dt.date, zone: dt.tzinfo) -> str:
    """That the clock changes on this day, in words; empty where it does not."""
    start, end = midnight(day, zone), midnight(day + dt.timedelta(1), zone)
    change = (end - start) - dt.timedelta(hours=geometry.HOURS_OF_A_DAY)
    if not change:
        return ""
    minutes = abs(change) // dt.timedelta(minutes=1)
    way = "back" if change > NOTHING else "forward"
    return f"The clock goes {way} by {minutes} minutes."


def _address(page: str, **query: object) -> str:
    return f"{reverse(f'admin:{page}')}?{urlencode(query)}"
