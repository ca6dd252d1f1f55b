"""Managers book rooms outside opening hours (docs/back-office.md, New reservation)."""

import pytest

from accounts.act import Act
from centers.models import Closure, MeetingRoom
from reservations.booking import amendments, approval
from reservations.booking.amendments import ChangeRequest
from reservations.models import Reservation, history
from reservations.models.status import Status
from roombook.errors import InvalidRequest, SlotUnavailable
from tests.factories_centers import MeetingRoomFactory
from tests.factories_reservations import HOUR, NOW, START, make_draft, make_room, pay

pytestmark = pytest.mark.django_db

# Seven in the evening in Denver: the center has closed at six.
EVENING = START + 10 * HOUR
REASON = "A board meeting, agreed by telephone"


@pytest.fixture
def manager(staff, room):
    return staff("Manager", room.center)


def in_the_evening(room, by, **fields):
    fields = {"start": EVENING, "hours_override_reason": REASON, **fields}
    return make_draft(room=room, created_by=by, **fields)


def close(room):
    Closure.objects.create(center=room.center, starts_at=EVENING, ends_at=EVENING + HOUR)


@pytest.mark.parametrize(
    ("is_live", "start", "hours"),
    # The second one lasts beyond midnight.
    [(True, EVENING, 3), (False, EVENING + 3 * HOUR, 4)],
)
def test_draft_of_a_manager_outside_hours_keeps_its_reason_and_is_booked(
    room, manager, is_live, start, hours
):
    MeetingRoom.objects.update(is_live_inventory=is_live)
    draft = in_the_evening(room, manager, start=start, hours=hours)

    draft.refresh_from_db()
    assert (draft.hours_override_reason, draft.created_by) == (REASON, manager)
    entry = history.get_changes(draft).get()
    assert (entry.changes, entry.actor) == ({"hours_override_reason": ["", REASON]}, manager)
    booking = pay(draft)
    if not is_live:
        assert booking.status == Status.PENDING
        booking = approval.approve(Act(manager, NOW, is_staff=True), booking.pk)
    assert booking.status == Status.CONFIRMED


@pytest.mark.parametrize("role", ["Desk", "Manager of another center", "customer"])
def test_draft_outside_hours_without_permission_is_refused(staff, room, role):
    name, _, elsewhere = role.partition(" of ")
    center = make_room().center if elsewhere else room.center
    with pytest.raises(InvalidRequest) as refused:
        in_the_evening(room, None if role == "customer" else staff(name, center))
    assert list(refused.value.fields) == ["hours_override_reason"]
    assert not Reservation.objects.exists()


def test_hours_override_does_not_allow_other_obstacles(room, manager):
    close(room)
    with pytest.raises(SlotUnavailable, match="closed at that time"):
        # From an hour before the closing time until two hours after it.
        in_the_evening(room, manager, start=EVENING - 2 * HOUR)


def test_hours_override_needs_a_reason_and_ends_with_a_later_closure(room, staff, manager):
    with pytest.raises(SlotUnavailable, match="closed"):
        in_the_evening(room, manager, hours_override_reason="  ")
    made = in_the_evening(room, manager)
    close(room)
    with pytest.raises(SlotUnavailable):
        pay(made)
    # Within the hours nothing is overridden, so no permission is needed, and no reason kept.
    made = in_the_evening(room, staff("Desk", room.center), start=START)
    assert made.hours_override_reason == ""
    assert not history.get_changes(made).exists()


def test_overridden_reservation_keeps_override_in_another_room_but_not_at_another_time(
    room, manager
):
    made, act = in_the_evening(room, manager), Act(manager, NOW, is_staff=True)
    other = MeetingRoomFactory(center=room.center, rate=room.rate)

    def move(room, start):
        amendments.amend(act, made.pk, ChangeRequest(room.pk, start, start + 3 * HOUR))
        made.refresh_from_db()

    move(other, EVENING)
    assert (made.room, made.hours_override_reason) == (other, REASON)
    with pytest.raises(SlotUnavailable):
        move(other, EVENING + HOUR)
    move(other, START)
    assert made.hours_override_reason == ""
    assert history.get_changes(made).first().changes["hours_override_reason"] == [REASON, ""]
