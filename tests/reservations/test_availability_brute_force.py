"""Availability of a room, compared with a brute-force check."""

from datetime import time

import pytest

from centers import hours
from centers.models import Closure
from centers.span import Span
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ClosureFactory, MeetingRoomFactory, OpeningHoursFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
)
from tests.reservations.availability_helpers import DAY, change, codes

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("after_hours", [False, True])
@pytest.mark.parametrize("turnaround", [0, 45])
def test_evaluation_agrees_with_a_brute_force_check(room, after_hours, turnaround):
    """Compares two days with opening hours, closures and reservations of every kind."""
    change(room, turnaround_minutes=turnaround)
    change(room.center, is_after_hours_support_enabled=after_hours)
    OpeningHoursFactory(center=room.center, weekday=2, opens=time(19), closes=time(0))
    ClosureFactory(center=room.center, starts_at=START - HOUR, ends_at=START - HOUR / 2)
    ClosureFactory(center=room.center, room=room, starts_at=START + DAY, ends_at=START + DAY + HOUR)
    elsewhere = MeetingRoomFactory(center=room.center)
    ClosureFactory(center=room.center, room=elsewhere, starts_at=START, ends_at=START + DAY)
    ada, bob = UserFactory(), UserFactory()
    make_booking(ada, room=room, start=START + 2 * HOUR)
    ReservationFactory(room=elsewhere, start=START, end=START + DAY, status=Status.CONFIRMED)
    held = make_draft(bob, room=room, start=START + 6 * HOUR)
    expired = make_draft(bob, room=room, start=START + DAY + 4 * HOUR)
    change(expired, hold_until=NOW)

    intervals = list(room.center.opening_hours.all())
    closures = list(Closure.objects.exclude(room=elsewhere))
    active = [
        each
        for each in Reservation.objects.filter(room=room)
        if each.status == Status.CONFIRMED or each.hold_until > NOW
    ]
    gap = turnaround * MINUTE

    def expect(span, user=None, excluding=None):
        if not after_hours and not hours.is_open(span, intervals, room.center.zone):
            yield "closed"
        for each in closures:
            if each.starts_at < span.end and span.start < each.ends_at:
                yield "closure"
        for each in active:
            is_own_draft = each.user == user and each.status == Status.NEW
            if each == excluding or is_own_draft:
                continue
            if each.start < span.end + gap and span.start - gap < each.end:
                yield "held"

    seen = set()
    for minutes in range(-120, 36 * 60, 30):
        for length in (HOUR / 2, 3 * HOUR):
            start = START + minutes * MINUTE
            span = Span(start, start + length)
            for user, excluding in ((None, None), (ada, None), (bob, None), (None, held)):
                expected = list(expect(span, user, excluding))
                found = codes(room, span, for_user=user, excluding=excluding)
                assert found == expected, (span, user, excluding)
                seen.update(found or ["available"])
    assert seen == {"available", "closure", "held"} | (set() if after_hours else {"closed"})
