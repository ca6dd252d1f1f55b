"""A booking for longer while a meeting takes place, where the next booking allows it."""

import datetime as dt
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from centers.models import MeetingRoom
from reservations.admin.overruns import get_overrun_urls
from reservations.booking import drafts
from reservations.models import Reservation
from roombook.errors import SlotUnavailable
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)

pytestmark = pytest.mark.django_db

DENVER = ZoneInfo("America/Denver")
END = START + 3 * HOUR
RUNNING = START + HOUR


def offer(*reservations):
    return get_overrun_urls(reservations, AdministratorFactory(), now=RUNNING)


def get_span(url):
    query = parse_qs(urlsplit(url).query)
    return tuple(
        dt.datetime.fromisoformat(query[name][0]).replace(tzinfo=DENVER)
        for name in ("start", "end")
    )


@pytest.mark.parametrize(
    ("turnaround", "starts_after", "free_minutes"),
    [(0, 0, 30), (15, 15, 60), (20, 30, 80), (240, 240, 510)],
)
def test_overrun_starts_after_the_turnaround_if_the_next_booking_allows(
    turnaround, starts_after, free_minutes
):
    room = make_room(turnaround_minutes=turnaround)
    running = make_booking(room=room, start=START)
    start, end = END + starts_after * MINUTE, END + (starts_after + 30) * MINUTE
    following = Reservation.objects.filter(
        pk=make_draft(room=room, start=START + 24 * HOUR, hours=1).pk
    )

    def move_next_booking(starts_at):
        following.update(
            start=starts_at,
            end=starts_at + HOUR,
            occupied_from=starts_at - turnaround * MINUTE,
            occupied_until=starts_at + HOUR + turnaround * MINUTE,
            hold_until=starts_at,
        )

    move_next_booking(END + (free_minutes - 1) * MINUTE)
    assert offer(running) == {}
    move_next_booking(END + free_minutes * MINUTE)
    assert get_span(offer(running)[running.pk]) == (start, end)
    # Neither the evaluator nor the database allows it earlier.
    earlier = {"start": start - 15 * MINUTE, "end": end - 15 * MINUTE}
    with pytest.raises(SlotUnavailable):
        drafts.create_draft(running.user, room_id=room.pk, **earlier, now=RUNNING)
    with pytest.raises(SlotUnavailable), transaction.atomic():
        ReservationFactory(room=room, turnaround_minutes=turnaround, **earlier)
    rest = drafts.create_draft(running.user, room_id=room.pk, start=start, end=end, now=RUNNING)
    # One's own draft is no conflict. The turnaround is not billed.
    assert (rest.start, rest.end, rest.total_cost) == (start, end, Decimal("12.50"))
    assert running.pk in offer(running)


def test_overruns_of_many_meetings_are_found_by_one_query():
    running = [make_booking(start=START) for _ in range(3)]
    rows = list(Reservation.objects.select_related("room__center"))
    root = AdministratorFactory()

    with CaptureQueriesContext(connection) as queries:
        urls = get_overrun_urls(rows, root, now=RUNNING)

    assert [*urls] == [each.pk for each in running]
    assert len(queries) == 1
    assert get_overrun_urls(rows, root, now=END) == {}


def test_overrun_uses_the_larger_turnaround_of_meeting_and_room():
    room = make_room(turnaround_minutes=30)
    running = make_booking(room=room, start=START)
    MeetingRoom.objects.update(turnaround_minutes=0)
    running = Reservation.objects.select_related("room__center").get(pk=running.pk)

    assert get_span(offer(running)[running.pk])[0] == END + 30 * MINUTE
