"""Can a room be had for a time, and if not, why not: the one evaluator (B11).

Asked by check-availability, by new drafts, by checkout, by approval, and by the back office. It
answers with every reason at once. Customers see the messages, staff the details too.
"""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db.models import Exists, Q, QuerySet

from centers import hours
from centers.models import Closure, MeetingRoom
from centers.span import Span
from reservations.models import Reservation
from reservations.models.querysets import get_conflict_bounds
from reservations.models.status import Status
from roombook.db.compiled_queries import compiled_query, datetime_param, int_param
from roombook.errors import SlotUnavailable

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a room cannot be had: a stable code, a sentence for customers, a detail for staff."""

    code: str
    message: str
    detail: str

    @property
    def staff_text(self) -> str:
        """What staff read; some reasons have no more to say to them than to customers."""
        return " ".join({self.message: 1, self.detail: 1})


@dataclass(frozen=True, slots=True)
class Availability:
    reasons: tuple[Reason, ...]

    @property
    def is_available(self) -> bool:
        return not self.reasons

    @property
    def staff_text(self) -> tuple[str, ...]:
        """Every reason as staff read it."""
        return tuple(each.staff_text for each in self.reasons)

    def require(self) -> None:
        """Raise the refusal that a customer may read, unless the room is free."""
        if self.reasons:
            raise SlotUnavailable(self.reasons[0].message)


AVAILABLE = Availability(())


def evaluate(
    room: MeetingRoom,
    span: Span,
    *,
    now: dt.datetime,
    for_user: "User | None" = None,
    ignoring: Reservation | None = None,
    outside_hours: bool = False,
) -> Availability:
    """Ask everything that could keep the room from being booked for the span.

    `for_user`: whose own drafts do not count against them. `ignoring`: the reservation that is
    itself being checked out, approved or moved. `outside_hours`: a manager has allowed this booking
    outside the opening hours; everything else counts all the same.
    """
    by_rule = (*_state(room), *_window(room, span, now), *_shape(room, span))
    if not by_rule and _is_open_and_free(
        room, span, now, for_user, ignoring, outside_hours=outside_hours
    ):
        return AVAILABLE
    return Availability(
        (
            *by_rule,
            *(() if outside_hours else _opening(room, span)),
            *_closures(room, span),
            *_rivals(room, span, now, for_user, ignoring),
        )
    )


def evaluate_reservation(
    reservation: Reservation, *, now: dt.datetime, for_user: "User | None" = None
) -> Availability:
    """`of` for a reservation that is there already: itself and its own override count for it."""
    return evaluate(
        reservation.room,
        reservation.span,
        now=now,
        for_user=for_user,
        ignoring=reservation,
        outside_hours=reservation.is_outside_hours,
    )


def _is_open_and_free(
    room: MeetingRoom,
    span: Span,
    now: dt.datetime,
    for_user: "User | None",
    ignoring: Reservation | None,
    *,
    outside_hours: bool = False,
) -> bool:
    """The fast path: whether there is no reason in hours, closures and rivals, in one question.

    Most rooms that are asked for are free, and then nobody needs a reason.
    """
    asked = opening_hours_and_conflicts(
        room=room.pk,
        center=room.center_id,
        **get_conflict_bounds(span, room.turnaround_minutes),
        now=now,
        # No row has the number 0.
        user=for_user.pk if for_user else 0,
        ignoring=ignoring.pk if ignoring else 0,
    )
    stretches = [OpeningHoursRow._make(row) for row in asked]
    if not stretches or stretches[0].is_closed or stretches[0].is_held:
        return False
    if outside_hours or room.center.is_after_hours_support_enabled:
        return True
    return hours.is_open(span, stretches, room.center.zone)


class OpeningHoursRow(NamedTuple):
    """A stretch of opening hours, and what is in the way of the span that was asked for."""

    weekday: int
    opens: dt.time
    closes: dt.time
    is_closed: bool
    is_held: bool


@compiled_query(keep_plan=True)
def opening_hours_and_conflicts() -> "QuerySet[Any, Any]":
    """The center's opening hours, each stretch with whether the span meets a closure or a rival.

    Where the center has no hours, one row of no weekday.
    """
    closures = _closures_between(
        int_param("center"),
        int_param("room"),
        start=datetime_param("start"),
        end=datetime_param("end"),
    )
    rivals = (
        Reservation.objects.filter(room=int_param("room"))
        .active_holds(datetime_param("now"))
        .overlapping(
            datetime_param("start"),
            datetime_param("end"),
            datetime_param("wide_start"),
            datetime_param("wide_end"),
        )
        .exclude(user=int_param("user"), status=Status.NEW)
        .exclude(pk=int_param("ignoring"))
    )
    return MeetingRoom.objects.filter(pk=int_param("room")).values_list(
        "center__opening_hours__weekday",
        "center__opening_hours__opens",
        "center__opening_hours__closes",
        Exists(closures),
        Exists(rivals),
    )


def _state(room: MeetingRoom) -> list[Reason]:
    message = "The room cannot be booked at the moment."
    reasons = []
    if not room.center.is_active:
        reasons.append(Reason("center-inactive", message, "The center is not active."))
    if not room.is_active:
        reasons.append(Reason("room-inactive", message, "The room is not active."))
    if room.is_blocked:
        reasons.append(Reason("room-blocked", message, "The room is blocked by staff."))
    return reasons


def _window(room: MeetingRoom, span: Span, now: dt.datetime) -> list[Reason]:
    if span.start < now:
        return [Reason("past", "That time has passed.", f"It is {now:%Y-%m-%d %H:%M} UTC.")]
    zone = room.center.zone
    days = _or_default(room.booking_window_days, settings.BOOKING_WINDOW_DAYS)
    last_day = now.astimezone(zone).date() + dt.timedelta(days=days)
    if span.start.astimezone(zone).date() > last_day:
        message = f"The room can be booked at most {days} days ahead."
        return [Reason("too-far-ahead", message, f"The last day is {last_day}.")]
    return []


def _shape(room: MeetingRoom, span: Span) -> list[Reason]:
    reasons = []
    grid = _or_default(room.grid_minutes, settings.BOOKING_GRID_MINUTES)
    if not all(_on_grid(moment, grid, room) for moment in (span.start, span.end)):
        message = f"Bookings begin and end on a {grid}-minute step."
        reasons.append(Reason("off-grid", message, f"Every {grid} minutes from local midnight."))
    minutes = span.duration.total_seconds() / 60
    shortest = _or_default(room.minimum_minutes, settings.BOOKING_MINIMUM_MINUTES)
    if minutes < shortest:
        message = f"The shortest booking of this room is {shortest} minutes."
        reasons.append(Reason("too-short", message, message))
    longest = _or_default(room.maximum_minutes, settings.BOOKING_MAXIMUM_DAYS * 24 * 60)
    if minutes > longest:
        message = f"The longest booking of this room is {longest / 60:g} hours."
        reasons.append(Reason("too-long", message, message))
    return reasons


def _on_grid(moment: dt.datetime, grid_minutes: int, room: MeetingRoom) -> bool:
    local = moment.astimezone(room.center.zone)
    since_midnight = dt.timedelta(
        hours=local.hour,
        minutes=local.minute,
        seconds=local.second,
        microseconds=local.microsecond,
    )
    return not since_midnight % dt.timedelta(minutes=grid_minutes)


def _opening(room: MeetingRoom, span: Span) -> list[Reason]:
    center = room.center
    if center.is_after_hours_support_enabled:
        return []
    if hours.is_open(span, center.opening_hours.all(), center.zone):
        return []
    opening = hours.format_week(center.opening_hours.all()) or "never"
    message = "The center is closed at that time."
    return [Reason("closed", message, f"It opens {opening}.")]


def is_outside_hours(room: MeetingRoom, span: Span) -> bool:
    """Whether the opening hours alone would keep the room from being booked for the span."""
    return bool(_opening(room, span))


def _closures(room: MeetingRoom, span: Span) -> list[Reason]:
    closures = _closures_between(room.center, room, start=span.start, end=span.end)
    return [
        Reason(
            "closure",
            "The room is closed at that time.",
            f"{closure.reason or 'Closed'}: {_local(closure.starts_at, room)}"
            f" to {_local(closure.ends_at, room)}",
        )
        for closure in closures.order_by("starts_at", "pk")
    ]


def _closures_between(center: Any, room: Any, *, start: Any, end: Any) -> "QuerySet[Closure]":
    return Closure.objects.filter(
        Q(room__isnull=True) | Q(room=room), center=center, starts_at__lt=end, ends_at__gt=start
    )


def _rivals(
    room: MeetingRoom,
    span: Span,
    now: dt.datetime,
    for_user: "User | None",
    ignoring: Reservation | None,
) -> list[Reason]:
    rivals = (
        Reservation.objects.filter(room=room)
        .active_holds(now)
        .overlapping_with_turnaround(span, turnaround_minutes=room.turnaround_minutes)
    )
    if for_user is not None:
        rivals = rivals.exclude(user=for_user, status=Status.NEW)
    if ignoring is not None:
        rivals = rivals.exclude(pk=ignoring.pk)
    return [
        Reason(
            "held",
            "The room is already taken at that time.",
            f"Reservation {rival.pk} ({rival.get_status_display()}), {_local(rival.start, room)}"
            f" to {_local(rival.end, room)}{_turnaround(rival)}",
        )
        for rival in rivals.order_by("start", "pk")
    ]


def _turnaround(rival: Reservation) -> str:
    minutes = rival.turnaround_minutes
    return f", {minutes} minutes of turnaround" if minutes else ""


def _or_default(override: int | None, default: int) -> int:
    """The room's own rule, else the deployment's."""
    return default if override is None else override


def _local(moment: dt.datetime, room: MeetingRoom) -> str:
    return f"{moment.astimezone(room.center.zone):%Y-%m-%d %H:%M}"
