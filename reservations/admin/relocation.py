"""Where a booking can take place instead, at its center and for no higher price."""

import datetime as dt
from collections.abc import Mapping
from copy import copy
from itertools import islice
from typing import NamedTuple, Self

from accounts.models import User
from centers.models import MeetingRoom
from centers.span import Span
from reservations import alternatives
from reservations.admin.actions import ACTIONS
from reservations.admin.actions.base import ActionPreview, ActionRequest
from reservations.alternatives import AlternativeSearch
from reservations.models import Reservation
from roombook.ids import parse_id

# Alternatives are sorted by price, so the next ones rarely help.
MAX_ATTEMPTS = 3
NOTHING_AVAILABLE = "No room that is as large is available for the same price or less."


class RelocationTarget(NamedTuple):
    """A room and a time, and the version of the reservation that moves there.

    Its text is what the preview's form sends back.
    """

    room: MeetingRoom
    span: Span
    version: int

    def __str__(self) -> str:
        start, end = self.span.start.isoformat(), self.span.end.isoformat()
        return f"{self.room.pk} {start} {end} {self.version}"

    @classmethod
    def parse(cls, text: str, reservation: Reservation) -> Self | None:
        """Read what the preview's form sent; None unless it is a room of the same center."""
        try:
            room_id, start, end, version = text.split(" ", 3)
            span = Span(dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end))
            expected = int(version)
        except ValueError:
            return None
        rooms = MeetingRoom.objects.filter(center=reservation.room.center_id)
        room = rooms.filter(pk=parse_id(room_id) or 0).first()
        return cls(room, span, expected) if room is not None else None

    @property
    def data(self) -> Mapping[str, object]:
        """The data that the action "Reschedule" takes."""
        return {
            "room": self.room,
            "start": self.span.start,
            "end": self.span.end,
            "expected_version": self.version,
        }


class Relocation(NamedTuple):
    """A proposal, or a preview that says why there is none."""

    target: RelocationTarget | None
    preview: ActionPreview


def propose(
    reservation: Reservation,
    *,
    has_other_times: bool,
    taken: list[RelocationTarget],
    by: User,
    now: dt.datetime,
) -> Relocation:
    """Find the cheapest room at the same time, else the nearest time, and preview the move.

    `taken` are the targets of other proposals, which are not executed yet.
    """
    room = copy(reservation.room)
    room.capacity = max(room.capacity, reservation.number_of_attendees)
    search = AlternativeSearch(room, reservation.span, (), reservation.user, now)
    found = alternatives.find_at_center(search, has_other_times=has_other_times)
    for alternative in islice(found, MAX_ATTEMPTS):
        span = Span(alternative.start, alternative.end)
        if any(each.room.pk == alternative.room_id and each.span.overlaps(span) for each in taken):
            continue
        room = MeetingRoom.objects.get(pk=alternative.room_id)
        target = RelocationTarget(room, span, reservation.version)
        request = ActionRequest(reservation, by=by, now=now, data=target.data, has_email=False)
        preview = ACTIONS["move"].preview(request)
        total = preview.expected_amount
        if not preview.problems and total is not None and total <= reservation.total_cost:
            return Relocation(target, preview)
    return Relocation(None, ActionPreview(problems=[NOTHING_AVAILABLE]))
