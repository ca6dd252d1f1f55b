"""Decides whether a room can be booked for a time and, if not, why not (B11).

This is the only evaluator. Checking availability, creating drafts, checkout, approval, rescheduling
and the back office all call it. It reports every reason at once: customers see the messages, staff
the details too. `is_available` decides about many times with the same rules, without queries.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Exists, Q, QuerySet

from accounts.models import User
from centers import hours
from centers.models import Center, Closure, MeetingRoom
from centers.rates import format_hours
from centers.rooms import BookingRules, get_booking_rules
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import ConflictBounds, get_conflict_bounds
from reservations.room_calendars import NO_ID, RoomCalendar
from roombook import dates
from roombook.db.compiled_queries import RowQuerySet, compiled_query, datetime_param, int_param
from roombook.errors import SlotUnavailable

HELD = "held"  # The code of the reason that another reservation holds the room.


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
    """The result of an evaluation.

    `is_outside_opening_hours` is set even if the evaluation ignores the opening hours.
    """

    reasons: tuple[Reason, ...] = ()
    is_outside_opening_hours: bool = False

    @property
    def is_available(self) -> bool:
        return not self.reasons

    @property
    def staff_texts(self) -> tuple[str, ...]:
        return tuple(reason.staff_text for reason in self.reasons)

    def raise_if_unavailable(self) -> None:
        """Raise SlotUnavailable with the first reason's message."""
        if self.reasons:
            raise SlotUnavailable(self.reasons[0].message)


# --- Evaluation ----------------------------------------------------------------------------------


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
) -> Availability:
    """Check everything that can prevent a booking of the room for the span.

    `for_user`: this customer's own drafts are not conflicts. `excluding`: the reservation that is
    checked out, approved or rescheduled. `turnaround_minutes`: by default that of the room now.
    `ignore_opening_hours`: a manager has allowed this booking outside the opening hours; every
    other rule still applies. `has_begun`: the meeting is running, and is to be extended.
    """
    params: ConflictParams = {
        "room": room.pk,
        "center": room.center_id,
        "now": now,
        **get_conflict_bounds(
            span, room.turnaround_minutes if turnaround_minutes is None else turnaround_minutes
        ),
        "user": for_user.pk if for_user else NO_ID,
        "excluded": excluding.pk if excluding else NO_ID,
    }
    rows = [OpeningHoursRow._make(row) for row in opening_hours_and_conflicts(**params)]
    is_outside_opening_hours = _is_outside_opening_hours(room.center, span, rows)
    reasons = _check_rules(room, span, now=now, has_begun=has_begun)
    if is_outside_opening_hours and not ignore_opening_hours:
        reasons.append(_describe_opening_hours(rows))
    if rows and rows[0].has_closure:
        reasons += _describe_closures(room, params)
    if rows and rows[0].has_conflict:
        reasons += _describe_conflicts(room, params)
    return Availability(tuple(reasons), is_outside_opening_hours)


def evaluate_reservation(
    reservation: Reservation, *, now: dt.datetime, for_user: User | None = None
) -> Availability:
    """Evaluate an existing reservation: without itself as a conflict, with its override, and with
    the turnaround that it was created with, which the database's constraint uses too."""
    return evaluate(
        reservation.room,
        reservation.span,
        now=now,
        for_user=for_user,
        excluding=reservation,
        turnaround_minutes=reservation.turnaround_minutes,
        ignore_opening_hours=reservation.is_outside_hours,
    )


def is_available(
    room: MeetingRoom,
    span: Span,
    calendar: RoomCalendar,
    *,
    now: dt.datetime,
) -> bool:
    """Return whether `evaluate` finds no reason, by a calendar that was loaded for the span."""
    return not (
        any(span.overlaps(taken) for taken in calendar.taken)
        or _check_rules(room, span, now=now)
        or _is_outside_opening_hours(room.center, span, calendar.opening_hours)
    )


def is_outside_opening_hours(room: MeetingRoom, span: Span) -> bool:
    """Return whether the opening hours prevent a booking of the room for the span."""
    return _is_outside_opening_hours(room.center, span, room.center.opening_hours.all())


# --- Opening hours, closures and other reservations ----------------------------------------------


class ConflictParams(ConflictBounds):
    """The arguments of the queries for closures and conflicts: values, or query parameters."""

    room: int
    center: int
    now: dt.datetime
    user: int
    excluded: int


class OpeningHoursRow(NamedTuple):
    """An interval of opening hours, and whether a closure or a reservation overlaps the span."""

    weekday: int
    opens: dt.time
    closes: dt.time
    has_closure: bool
    has_conflict: bool


@compiled_query(keep_plan=True)
def opening_hours_and_conflicts() -> RowQuerySet:
    """Select the center's opening hours, or one row of empty columns if it has none.

    Each row also says whether a closure or a reservation conflicts with the span. So one query is
    enough if the room is available, which is the usual case. The conflicts themselves are read only
    if there are any.
    """
    params: ConflictParams = {
        "room": int_param("room"),
        "center": int_param("center"),
        "now": datetime_param("now"),
        "start": datetime_param("start"),
        "end": datetime_param("end"),
        "wide_start": datetime_param("wide_start"),
        "wide_end": datetime_param("wide_end"),
        "user": int_param("user"),
        "excluded": int_param("excluded"),
    }
    return MeetingRoom.objects.filter(pk=params["room"]).values_list(
        "center__opening_hours__weekday",
        "center__opening_hours__opens",
        "center__opening_hours__closes",
        Exists(_select_closures(params)),
        Exists(_select_conflicts(params)),
    )


def _select_closures(params: ConflictParams) -> "QuerySet[Closure]":
    closures = Closure.objects.closing(params["room"], center=params["center"])
    return closures.overlapping(params["start"], params["end"])


def _select_conflicts(params: ConflictParams) -> "QuerySet[Reservation]":
    conflicts = Reservation.slots.filter(room=params["room"]).conflicting(
        params, now=params["now"], user=params["user"]
    )
    # The slot that is held for a change of a booking prevents no other change of it.
    return conflicts.exclude(Q(pk=params["excluded"]) | Q(holds_for=params["excluded"]))


def _is_outside_opening_hours(
    center: Center, span: Span, intervals: Iterable[hours.OpeningInterval]
) -> bool:
    if center.is_after_hours_support_enabled:
        return False
    return not hours.is_open(span, intervals, center.zone)


def _describe_opening_hours(rows: Sequence[OpeningHoursRow]) -> Reason:
    week = hours.format_week(rows) or "never"
    return Reason("closed", "The center is closed at that time.", f"It opens {week}.")


def _describe_closures(room: MeetingRoom, params: ConflictParams) -> list[Reason]:
    return [
        Reason(
            "closure",
            "The room is closed at that time.",
            f"{closure.reason or 'Closed'}:"
            f" {dates.format_span(closure.starts_at, closure.ends_at, room.center.zone)}",
        )
        for closure in _select_closures(params).order_by("starts_at", "pk")
    ]


def _describe_conflicts(room: MeetingRoom, params: ConflictParams) -> list[Reason]:
    reasons = []
    for conflict in _select_conflicts(params).order_by("start", "pk"):
        detail = (
            f"Reservation {conflict.pk} ({conflict.get_status_display()}),"
            f" {dates.format_span(conflict.start, conflict.end, room.center.zone)}"
        )
        if conflict.turnaround_minutes:
            detail += f", {conflict.turnaround_minutes} minutes of turnaround"
        reasons.append(Reason(HELD, "The room is already taken at that time.", detail))
    return reasons


# --- Rules that need no query --------------------------------------------------------------------


def _check_rules(
    room: MeetingRoom, span: Span, *, now: dt.datetime, has_begun: bool = False
) -> list[Reason]:
    rules = get_booking_rules(room)
    window = [] if has_begun else _check_window(room, rules, span, now)
    return [*check_state(room), *window, *_check_shape(room, rules, span)]


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


def _check_window(
    room: MeetingRoom, rules: BookingRules, span: Span, now: dt.datetime
) -> list[Reason]:
    zone = room.center.zone
    if span.start < now:
        local_now = dates.format_datetime(now, zone)
        return [Reason("past", "That time has passed.", f"It is {local_now}.")]
    last_day = rules.get_last_day(now, zone)
    if span.start.astimezone(zone).date() > last_day:
        message = f"The room can be booked at most {rules.window_days} days ahead."
        return [Reason("too-far-ahead", message, f"The last day is {dates.format_day(last_day)}.")]
    return []


def _check_shape(room: MeetingRoom, rules: BookingRules, span: Span) -> list[Reason]:
    """Check that both ends are on the grid, and the length of the span."""
    zone = room.center.zone
    reasons = []
    if not all(hours.is_on_slot(end, zone, rules.slot_minutes) for end in (span.start, span.end)):
        message = f"Bookings begin and end on a {rules.slot_minutes}-minute step."
        detail = f"Every {rules.slot_minutes} minutes from local midnight."
        reasons.append(Reason("off-grid", message, detail))
    minutes = span.duration.total_seconds() / 60
    if minutes < rules.minimum_minutes:
        message = f"The shortest booking of this room is {rules.minimum_minutes} minutes."
        reasons.append(Reason("too-short", message, message))
    if minutes > rules.maximum_minutes:
        message = f"The longest booking of this room is {_format_length(rules.maximum_minutes)}."
        reasons.append(Reason("too-long", message, message))
    return reasons


def _format_length(minutes: int) -> str:
    """Format whole days as days (`14 days`, `1 day`), anything else as hours (`1.5 hours`)."""
    days, rest = divmod(minutes, 24 * 60)
    if rest or not days:
        return format_hours(Decimal(minutes) / 60)
    return "1 day" if days == 1 else f"{days} days"
