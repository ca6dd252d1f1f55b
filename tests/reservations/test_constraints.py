"""Database constraints, with every check of the application bypassed."""

from contextlib import contextmanager, nullcontext
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from centers.models import MeetingRoom
from centers.span import Span
from reservations import apps, availability
from reservations.availability import Availability
from reservations.models import Reservation, constraints
from reservations.models.status import Status
from roombook.errors import SlotUnavailable
from tests.factories_centers import MeetingRoomFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_draft,
    make_room,
    pay,
)

pytestmark = pytest.mark.django_db


@contextmanager
def refused(name=constraints.NO_OVERLAP):
    with pytest.raises(DatabaseError, match=name), transaction.atomic():
        yield


@pytest.fixture
def room():
    return MeetingRoomFactory()


@pytest.fixture
def held(room):
    return ReservationFactory(room=room)


def insert_row(room, **fields):
    """Insert a row without calling the save method of the model."""
    row = ReservationFactory.build(room=room, user=UserFactory(), **fields)
    turnaround = timedelta(minutes=row.turnaround_minutes)
    row.occupied_from, row.occupied_until = row.start - turnaround, row.end + turnaround
    return Reservation.objects.bulk_create([row])[0]


# --- Overlapping reservations ---------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.PROCESSING, Status.PENDING, Status.CONFIRMED])
@pytest.mark.parametrize(("first", "last"), [(0, 3), (1, 2), (-1, 4), (-1, 0.25), (2.75, 4)])
def test_insert_of_overlapping_active_reservation_is_refused(held, room, status, first, last):
    with refused():
        insert_row(room, status=status, start=START + first * HOUR, end=START + last * HOUR)


def test_save_of_overlapping_reservation_raises_slot_unavailable(held, room):
    with pytest.raises(SlotUnavailable), transaction.atomic():
        ReservationFactory(room=room)


def test_insert_without_conflict_is_accepted(held, room):
    insert_row(room, start=START - 3 * HOUR)
    insert_row(room, start=START + 3 * HOUR)
    insert_row(MeetingRoomFactory())
    for status in Status.values:
        if status not in {Status.PROCESSING, Status.PENDING, Status.CONFIRMED}:
            insert_row(room, status=status)
    assert Reservation.objects.count() == 9 + 1


def test_insert_within_turnaround_is_refused(held, room):
    held.turnaround_minutes = 30
    held.save()
    with refused():
        insert_row(room, start=held.end + 15 * MINUTE)
    insert_row(room, start=held.end + 30 * MINUTE)


@pytest.mark.parametrize("gap", [0, 14, 15, 29, 30])
@pytest.mark.parametrize(("own", "other"), [(0, 30), (30, 15), (15, 15), (0, 0)])
@pytest.mark.parametrize("is_later", [True, False])
def test_database_and_availability_agree_on_the_larger_turnaround(room, own, other, gap, is_later):
    """The turnaround of the room has changed between the two bookings."""
    held = insert_row(room, turnaround_minutes=other)
    room.turnaround_minutes = own
    room.save()
    start = held.end + gap * MINUTE if is_later else held.start - gap * MINUTE - 3 * HOUR
    span = Span(start, start + 3 * HOUR)
    room = MeetingRoom.objects.with_booking_details().get(pk=room.pk)
    reasons = availability.evaluate(room, span, now=NOW).reasons

    is_taken = gap < max(own, other)
    assert is_taken == ("held" in {each.code for each in reasons})
    with refused() if is_taken else nullcontext():
        insert_row(room, start=start, turnaround_minutes=own)


@pytest.mark.parametrize(("before", "after"), [(0, 30), (30, 0)])
@pytest.mark.parametrize("has_neighbor", [True, False])
def test_checkout_of_draft_uses_the_turnaround_that_it_was_created_with(
    before, after, has_neighbor
):
    """Even if the hold of the draft has expired, and a neighbor has booked meanwhile."""
    room = make_room(turnaround_minutes=before)
    draft = make_draft(room=room)
    room.turnaround_minutes = after
    room.save()
    later = NOW + HOUR
    Reservation.objects.filter(pk=draft.pk).release_holds(NOW)
    if has_neighbor:
        # 15 minutes after the draft, which is less than one of the two turnarounds.
        insert_row(room, start=draft.end + 15 * MINUTE, turnaround_minutes=min(before, after))

    if has_neighbor and before:
        with pytest.raises(SlotUnavailable, match="already taken"):
            pay(draft, now=later)
    else:
        pay(draft, now=later)
        draft.refresh_from_db()
        assert (draft.status, draft.turnaround_minutes) == (Status.CONFIRMED, before)


def test_update_that_creates_an_overlap_is_refused(held, room):
    later = insert_row(room, start=START + 3 * HOUR)
    elsewhere = insert_row(MeetingRoomFactory())
    rows = Reservation.objects
    with refused():
        rows.filter(pk=later.pk).update(start=START + 2 * HOUR, occupied_from=START + 2 * HOUR)
    with refused():
        rows.filter(pk=held.pk).update(end=START + 4 * HOUR, occupied_until=START + 4 * HOUR)
    with refused():
        rows.filter(pk=elsewhere.pk).update(room=room)


def test_update_to_a_second_hold_of_the_slot_is_refused(held, room):
    drafted = insert_row(room, status=Status.NEW)
    with refused():
        Reservation.objects.filter(pk=drafted.pk).update(
            status="Confirmed", holds_slot=True, booked_at=NOW
        )
    with refused():
        Reservation.objects.filter(pk=drafted.pk).update(holds_slot=True, hold_until=NOW)


def test_checkout_without_availability_check_is_refused_by_the_database(monkeypatch):
    room = make_room()
    first, second = make_draft(room=room), make_draft(room=room, now=NOW + 20 * MINUTE)
    pay(second, now=NOW + 21 * MINUTE)
    monkeypatch.setattr(availability, "evaluate", lambda *args, **kwargs: Availability(()))

    with pytest.raises(SlotUnavailable):
        pay(first, now=NOW + 22 * MINUTE)
    with pytest.raises(SlotUnavailable):
        make_draft(room=room, now=NOW + 22 * MINUTE)

    first.refresh_from_db()
    assert first.status == Status.NEW
    assert not first.payments.exists()
    assert Reservation.objects.count() == 2


# --- The triggers of SQLite -----------------------------------------------------------------------


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has no triggers of ours")
def test_missing_trigger_is_reported_and_created_again():
    assert apps.check_triggers(["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {constraints.NO_OVERLAP}_update")

    (error,) = apps.check_triggers(["default"])
    assert error.id == "reservations.E001"
    assert f"{constraints.NO_OVERLAP}_update" in error.msg

    constraints.create_triggers("default")
    assert apps.check_triggers(["default"]) == []
