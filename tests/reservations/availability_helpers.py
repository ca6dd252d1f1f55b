"""Availability of a room: each reason alone, all reasons together, and conflicts."""

from datetime import timedelta

from centers.models import MeetingRoom
from centers.span import Span
from reservations import availability
from tests.factories_reservations import HOUR, NOW, START

DAY = timedelta(days=1)
SPAN = Span(START, START + 3 * HOUR)


def of(room, span=SPAN, *, now=NOW, **who):
    fresh = MeetingRoom.objects.with_booking_details().get(pk=room.pk)
    return availability.evaluate(fresh, span, now=now, **who)


def codes(*args, **kwargs):
    return [reason.code for reason in of(*args, **kwargs).reasons]


def change(row, **fields):
    type(row).objects.filter(pk=row.pk).update(**fields)
