"""The calendar of a room: whether it can be booked for a time and, if not, why not (B11).

`RoomCalendar` is the only evaluator, and pure: reasons, free times and the timeline come from it.
`load_calendars` loads it for many rooms. `evaluate` loads it for one span of a room, by a single
statement if nothing takes the room then; checking availability, creating drafts, checkout,
approval, amendments and the back office all call it. Every reason is reported at once: customers
see the messages, staff the details too.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Exists

from accounts.models import User
from centers import hours
from centers.models import Closure, MeetingRoom
from centers.rates import format_hours
from centers.records import query_opening_hours
from centers.rooms import BookingRules, get_booking_rules
from centers.span import Span, find_gaps, get_local_midnight
from reservations.models import Reservation
from reservations.models.querysets import NO_ID, ConflictBounds, get_conflict_bounds
from reservations.models.status import Status
from roombook import dates
from roombook.db.compiled_queries import RowQuerySet, compiled_query, datetime_param, int_param
from roombook.errors import SlotUnavailable

# Codes of reasons: another reservation holds the room; an end is not on the room's grid.
HELD, OFF_GRID = "held", "off-grid"
# So long before the running time slot, staff can book.
LATE_BOOKING = dt.timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a room is not available: a stable code, a message for customers, a detail for staff."""

    code: str
    message: str
    detail: str

    @property
    def staff_text(self) -> str:
        """Return the message and the detail, or only the message if both are equal."""
        return self.message if self.detail == self.message else f"{self.message} {self.detail}"


@dataclass(frozen=True, slots=True)
class Availability:
    """The result of an evaluation."""

    reasons: tuple[Reason, ...] = ()

    @property
    def is_available(self) -> bool:
        return not self.reasons

    @property
    def staff_texts(self) -> tuple[str, ...]:
        return tuple(reason.staff_text for reason in self.reasons)

    def raise_if_unavailable(self) -> None:
        """Raise SlotUnavailable with the first reason's message."""
        if self.reasons:
            raise SlotUnavailable(self.reasons[0].message, staff_texts=self.staff_texts)


# --- The calendar of a room ----------------------------------------------------------------------


class HeldTime(NamedTuple):
    """The time for which a reservation holds the room, with the larger turnaround around it."""

    span: Span
    reservation_id: int
    status: str
    start: dt.datetime
    end: dt.datetime
    turnaround_minutes: int


@dataclass(frozen=True, slots=True)
class RoomCalendar:
    """When a room can be booked, within the span for which its closures and holds were loaded."""

    room: MeetingRoom
    opening_hours: Sequence[hours.OpeningInterval]
    closures: Sequence[Closure] = ()
    held: Sequence[HeldTime] = ()

    def find_reasons(
        self,
        span: Span,
        *,
        now: dt.datetime,
        ignore_opening_hours: bool = False,
        has_begun: bool = False,
        by_staff: bool = False,
    ) -> Iterator[Reason]:
        """Yield everything that prevents a booking of the span. `evaluate` has the options."""
        rules, zone = get_booking_rules(self.room), self.room.center.zone
        yield from check_state(self.room)
        if not has_begun:
            earliest = get_earliest_start(rules, now, zone) if by_staff else now
            yield from _check_window(rules, span, now, zone, earliest=earliest)
        yield from _check_shape(rules, span, zone)
        if not ignore_opening_hours and self.is_outside_opening_hours(span):
            week = hours.format_week(self.opening_hours) or "never"
            yield Reason("closed", "The center is closed at that time.", f"It opens {week}.")
        for closure in self.closures:
            if closure.span.overlaps(span):
                time = dates.format_span(closure.starts_at, closure.ends_at, zone)
                detail = f"{closure.reason or 'Closed'}: {time}"
                yield Reason("closure", "The room is closed at that time.", detail)
        for held in self.held:
            if held.span.overlaps(span):
                detail = (
                    f"Reservation {held.reservation_id} ({Status(held.status).label}),"
                    f" {dates.format_span(held.start, held.end, zone)}"
                )
                if held.turnaround_minutes:
                    detail += f", {held.turnaround_minutes} minutes of turnaround"
                yield Reason(HELD, "The room is already taken at that time.", detail)

    def is_available(self, span: Span, *, now: dt.datetime, by_staff: bool = False) -> bool:
        return next(self.find_reasons(span, now=now, by_staff=by_staff), None) is None

    def is_outside_opening_hours(self, span: Span) -> bool:
        """Return whether the opening hours prevent a booking of the span."""
        center = self.room.center
        return not center.is_after_hours_support_enabled and not hours.is_open(
            span, self.opening_hours, center.zone
        )

    def get_open_spans(self, within: Span) -> list[Span]:
        """Return when the center is open, whether it has support after hours or not."""
        zone = self.room.center.zone
        return list(hours.get_open_spans_within(within, self.opening_hours, zone))

    def find_free_times(
        self,
        period: Span,
        *,
        now: dt.datetime,
        duration: dt.timedelta | None = None,
        outside_opening_hours: bool = False,
        by_staff: bool = False,
    ) -> Iterator[Span]:
        """Yield the longest times, in order, such that the room can be booked within each of them.

        A booking whose ends are on the room's grid and whose length the room allows is available
        exactly if it lies within one of them: they are the complement of what `find_reasons`
        finds. Only a booking that starts before the end of the booking window and ends after it is
        available although none holds it. `outside_opening_hours`: instead, the times that would be
        free if the opening hours were overridden. `by_staff`: what has just begun is free too.
        """
        rules, zone = get_booking_rules(self.room), self.room.center.zone
        shortest = dt.timedelta(minutes=max(rules.minimum_minutes, 1))
        longest = dt.timedelta(minutes=rules.maximum_minutes)
        if duration is not None:
            if duration < shortest or duration % dt.timedelta(minutes=rules.slot_minutes):
                return
            shortest = duration
        window_end = get_local_midnight(rules.get_last_day(now, zone) + dt.timedelta(days=1), zone)
        earliest = get_earliest_start(rules, now, zone) if by_staff else now
        first, last = max(period.start, earliest), min(period.end, window_end)
        if first >= last or shortest > longest or any(check_state(self.room)):
            return
        within = Span(first, last)
        is_always_open = self.room.center.is_after_hours_support_enabled
        unavailable = [within] if is_always_open else self.get_open_spans(within)
        if not outside_opening_hours:
            unavailable = find_gaps(within, unavailable)
        taken = [*(each.span for each in self.closures), *(each.span for each in self.held)]
        for gap in find_gaps(within, [*unavailable, *taken]):
            start = hours.round_up_to_slot(gap.start, zone, rules.slot_minutes)
            end = hours.round_down_to_slot(gap.end, zone, rules.slot_minutes)
            if end - start >= shortest:
                yield Span(start, end)


def check_state(room: MeetingRoom) -> list[Reason]:
    """Check whether the room and its center can be booked at all."""
    message = "The room cannot be booked at the moment."
    reasons = []
    if not room.center.is_active:
        reasons.append(Reason("center-inactive", message, "The center is not active."))
    if not room.is_active:
        reasons.append(Reason("room-inactive", message, "The room is not active."))
    if room.is_blocked:
        reasons.append(Reason("room-blocked", message, "The room is blocked by staff."))
    return reasons


def get_earliest_start(rules: BookingRules, now: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return from when staff can book: the slot that is running, and the quarter of an hour before.

    So who walks in is booked from when they came. Customers book what has not begun.
    """
    return hours.round_down_to_slot(now, zone, rules.slot_minutes) - LATE_BOOKING


def _check_window(
    rules: BookingRules, span: Span, now: dt.datetime, zone: dt.tzinfo, *, earliest: dt.datetime
) -> Iterator[Reason]:
    if span.start < earliest or span.end <= now:
        local_now = dates.format_datetime(now, zone)
        yield Reason("past", "That time has passed.", f"It is {local_now}.")
    elif span.start.astimezone(zone).date() > (last_day := rules.get_last_day(now, zone)):
        message = f"The room can be booked at most {rules.window_days} days ahead."
        yield Reason("too-far-ahead", message, f"The last day is {dates.format_day(last_day)}.")


def _check_shape(rules: BookingRules, span: Span, zone: dt.tzinfo) -> Iterator[Reason]:
    """Check that both ends are on the grid, and the length of the span."""
    if not all(hours.is_on_slot(end, zone, rules.slot_minutes) for end in (span.start, span.end)):
        message = f"Bookings begin and end on a {rules.slot_minutes}-minute step."
        detail = f"Every {rules.slot_minutes} minutes from local midnight."
        yield Reason(OFF_GRID, message, detail)
    minutes = span.duration.total_seconds() / 60
    if minutes < rules.minimum_minutes:
        message = f"The shortest booking of this room is {rules.minimum_minutes} minutes."
        yield Reason("too-short", message, message)
    if minutes > rules.maximum_minutes:
        message = f"The longest booking of this room is {_format_length(rules.maximum_minutes)}."
        yield Reason("too-long", message, message)


def _format_length(minutes: int) -> str:
    """Format whole days as days (`14 days`, `1 day`), anything else as hours (`1.5 hours`)."""
    days, rest = divmod(minutes, 24 * 60)
    if rest or not days:
        return format_hours(Decimal(minutes) / 60)
    return "1 day" if days == 1 else f"{days} days"


# --- Loading the calendars of many rooms ---------------------------------------------------------


def load_calendars(
    rooms: Collection[MeetingRoom], within: Span, *, user: User | None, now: dt.datetime
) -> Mapping[int, RoomCalendar]:
    """Return the calendar of each room by its id, with three queries.

    It is complete for bookings within `within`. The account's own drafts, if it is known, do not
    take time (B11.3).
    """
    weeks: dict[int, list[hours.OpeningHoursRow]] = defaultdict(list)
    for center, *interval in query_opening_hours(ids=list({room.center_id for room in rooms})):
        weeks[center].append(hours.OpeningHoursRow._make(interval))
    closures = _load_closures(rooms, within)
    turnarounds = {room.pk: room.turnaround_minutes for room in rooms}
    held = _load_held(turnarounds, within, now=now, user=user.pk if user else NO_ID)
    return {
        room.pk: RoomCalendar(room, weeks[room.center_id], closures[room.pk], held[room.pk])
        for room in rooms
    }


def _load_closures(rooms: Collection[MeetingRoom], within: Span) -> Mapping[int, Sequence[Closure]]:
    found: dict[int, list[Closure]] = defaultdict(list)
    closures = Closure.objects.filter(center__in={room.center_id for room in rooms})
    closures = closures.overlapping(within.start, within.end).order_by("starts_at", "pk")
    for closure in closures:
        for room in rooms:
            if room.center_id == closure.center_id and closure.room_id in {None, room.pk}:
                found[room.pk].append(closure)
    return found


def _load_held(
    turnarounds: Mapping[int, int],
    within: Span,
    *,
    now: dt.datetime,
    user: int,
    excluded: int = NO_ID,
) -> Mapping[int, Sequence[HeldTime]]:
    """Load what holds rooms, for bookings with these minutes of turnaround, by the rooms' ids."""
    conflicts = Reservation.slots.filter(room__in=turnarounds).conflicting(
        get_conflict_bounds(within, max(turnarounds.values(), default=0)),
        now=now,
        user=user,
        excluded=excluded,
    )
    columns = ("start", "end", "occupied_from", "occupied_until", "turnaround_minutes")
    rows = conflicts.order_by("start", "pk").values_list("room_id", "pk", "status", *columns)
    found: dict[int, list[HeldTime]] = defaultdict(list)
    for room_id, pk, status, start, end, occupied_from, occupied_until, minutes in rows:
        ours = dt.timedelta(minutes=turnarounds[room_id])
        span = Span(min(occupied_from, start - ours), max(occupied_until, end + ours))
        found[room_id].append(HeldTime(span, pk, status, start, end, minutes))
    return found


# --- Evaluating one span of a room ---------------------------------------------------------------


def evaluate(
    room: MeetingRoom,
    span: Span,
    *,
    now: dt.datetime,
    for_user: User | None = None,
    excluding: Reservation | None = None,
    turnaround_minutes: int | None = None,
    ignore_opening_hours: bool = False,
    has_begun: bool = False,
    by_staff: bool = False,
) -> Availability:
    """Check everything that can prevent a booking of the room for the span.

    `for_user`: this customer's own drafts are not conflicts. `excluding`: the reservation that is
    checked out, approved or rescheduled. `turnaround_minutes`: by default that of the room now.
    `ignore_opening_hours`: a manager has allowed this booking outside the opening hours; every
    other rule still applies. `has_begun`: the meeting is running, and is to be extended or paid.
    `by_staff`: it may have just begun.
    """
    if turnaround_minutes is None:
        turnaround_minutes = room.turnaround_minutes
    user = for_user.pk if for_user else NO_ID
    excluded = excluding.pk if excluding else NO_ID
    rows = opening_hours_and_conflicts(
        room=room.pk,
        center=room.center_id,
        now=now,
        **get_conflict_bounds(span, turnaround_minutes),
        user=user,
        excluded=excluded,
    )
    *_, has_closure, has_conflict = rows[0] if rows else (False, False)
    week = [hours.OpeningHoursRow._make(row[:3]) for row in rows]
    closures: Sequence[Closure] = ()
    held: Sequence[HeldTime] = ()
    if has_closure:
        closures = _load_closures([room], span)[room.pk]
    if has_conflict:
        turnarounds = {room.pk: turnaround_minutes}
        held = _load_held(turnarounds, span, now=now, user=user, excluded=excluded)[room.pk]
    calendar = RoomCalendar(room, week, closures, held)
    reasons = calendar.find_reasons(
        span,
        now=now,
        ignore_opening_hours=ignore_opening_hours,
        has_begun=has_begun,
        by_staff=by_staff,
    )
    return Availability(tuple(reasons))


def evaluate_reservation(
    reservation: Reservation, *, now: dt.datetime, for_user: User | None = None
) -> Availability:
    """Evaluate an existing reservation: without itself as a conflict, with its override, and with
    the turnaround that it was created with, which the database's constraint uses too.

    What has just begun may still be paid or approved (`Reservation.payable_until`).
    """
    return evaluate(
        reservation.room,
        reservation.span,
        now=now,
        for_user=for_user,
        excluding=reservation,
        turnaround_minutes=reservation.turnaround_minutes,
        ignore_opening_hours=reservation.is_outside_hours,
        has_begun=reservation.status in {Status.NEW, Status.PENDING}
        and reservation.start <= now < reservation.payable_until,
    )


def is_outside_opening_hours(room: MeetingRoom, span: Span) -> bool:
    """Return whether the opening hours prevent a booking of the room for the span."""
    calendar = RoomCalendar(room, list(room.center.opening_hours.all()))
    return calendar.is_outside_opening_hours(span)


@compiled_query(keep_plan=True)
def opening_hours_and_conflicts() -> RowQuerySet:
    """Select the center's opening hours, or one row of empty columns if it has none.

    Each row also says whether a closure or a reservation conflicts with the span. So one query is
    enough if the room is available, which is the usual case. The conflicts themselves are read only
    if there are any.
    """
    room, center = int_param("room"), int_param("center")
    start, end = datetime_param("start"), datetime_param("end")
    bounds: ConflictBounds = {
        "start": start,
        "end": end,
        "wide_start": datetime_param("wide_start"),
        "wide_end": datetime_param("wide_end"),
    }
    conflicts = Reservation.slots.filter(room=room).conflicting(
        bounds,
        now=datetime_param("now"),
        user=int_param("user"),
        excluded=int_param("excluded"),
    )
    return MeetingRoom.objects.filter(pk=room).values_list(
        "center__opening_hours__weekday",
        "center__opening_hours__opens",
        "center__opening_hours__closes",
        Exists(Closure.objects.closing(room, center=center).overlapping(start, end)),
        Exists(conflicts),
    )
