"""What a timeline shows, read with a number of queries that does not depend on its size.

Of customers, only the names are read.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain

from django.db.models import Model
from django.utils.http import quote_etag

from centers import hours
from centers.models import Center, MeetingRoom
from centers.requested_span import MAX_SPAN
from centers.span import Span
from reservations.admin.timeline import geometry
from reservations.admin.timeline.free_slots import TimelineOptions
from reservations.admin.timeline.geometry import TimelineAxis
from reservations.models import Reservation

# A timeline that is requested again shows a current time that is at most this old.
NOW_STEP = dt.timedelta(minutes=5)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class TimelineData:
    """The bookings and closures of some rooms of a center within a span."""

    def __init__(
        self, center: Center, rooms: list[MeetingRoom], span: Span, options: TimelineOptions
    ) -> None:
        self.center, self.rooms = center, rooms
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
            Reservation.slots.filter(
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
                *("holds_for_id", "version", "checked_in_at"),
                *("user__first_name", "user__last_name"),
            )
            .order_by("start", "pk")
        )

    def get_open_spans(self, day: dt.date) -> list[Span]:
        return list(hours.get_open_spans(day, self.center.opening_hours.all(), self.center.zone))

    def crop(self, axes: list[TimelineAxis], rooms: Sequence[MeetingRoom]) -> list[TimelineAxis]:
        """Crop the axes to the hours in which the center is open or something is booked.

        Unless the user wants to see the whole day.
        """
        if self.options.whole_day:
            return axes
        bookings = [booking.span for room in rooms for booking in self.bookings[room.pk]]
        visible = [
            geometry.get_visible_hours(
                axis.span, axis.zone, [*self.get_open_spans(axis.day), *bookings]
            )
            for axis in axes
        ]
        hours = (min(first for first, _ in visible), max(last for _, last in visible))
        cropped = (geometry.build_axis(axis.day, axis.zone, hours) for axis in axes)
        return [axis for axis in cropped if axis]

    def compute_etag(self) -> str:
        """The ETag of the timeline: of everything that was read, and the time in steps."""
        bookings = list(chain.from_iterable(self.bookings.values()))
        rows = [
            *(self.center, *self.center.opening_hours.all(), *self.rooms, *self.closures),
            *(*bookings, *(booking.user for booking in bookings)),
        ]
        step = (self.options.now - EPOCH) // NOW_STEP
        options = replace(self.options, now=EPOCH)
        content = (options, step, [_get_values(row) for row in rows])
        return quote_etag(sha256(repr(content).encode()).hexdigest())


def _get_values(row: Model) -> list[tuple[str, object]]:
    return [(name, value) for name, value in vars(row).items() if not name.startswith("_")]
