"""Managers book rooms outside opening hours (docs/back-office.md, New reservation)."""

import pytest

from accounts.act import Act
from centers.models import Closure
from reservations.booking import amendments, approval, checkout, drafts
from reservations.booking.amendments import ChangeRequest
from reservations.models import Reservation, history
from reservations.models.status import Status
from roombook.errors import InvalidRequest, SlotUnavailable
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    make_draft,
    make_payment_method,
    make_room,
)

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


def test_draft_outside_hours_without_reason_is_refused(room, manager):
    with pytest.raises(SlotUnavailable, match="closed"):
        in_the_evening(room, manager, hours_override_reason="  ")


def test_draft_outside_hours_by_manager_keeps_reason(room, manager):
    made = in_the_evening(room, manager)
    made.refresh_from_db()
    assert made.hours_override_reason == REASON
    assert made.created_by == manager
    entry = history.get_changes(made).get()
    assert entry.changes == {"hours_override_reason": ["", REASON]}
    assert entry.actor == manager


def test_checkout_of_overridden_draft_succeeds(room, manager):
    made = in_the_evening(room, manager)
    paid = checkout.check_out(Act(made.user, NOW), made.pk, payment_method=make_payment_method())
    assert paid.status == Status.CONFIRMED


def test_approval_of_overridden_request_succeeds(manager, room):
    type(room).objects.filter(pk=room.pk).update(is_live_inventory=False)
    made = in_the_evening(room, manager)
    pending = checkout.check_out(Act(made.user, NOW), made.pk, payment_method=make_payment_method())
    assert pending.status == Status.PENDING
    assert approval.approve(Act(manager, NOW, is_staff=True), made.pk).status == Status.CONFIRMED


def test_draft_outside_hours_over_midnight_is_allowed(room, manager):
    assert in_the_evening(room, manager, start=EVENING + 3 * HOUR, hours=4).pk


@pytest.mark.parametrize(
    "role", ["Viewer", "Desk", "Accountant", "Manager of another center", "customer"]
)
def test_draft_outside_hours_without_permission_is_refused(staff, room, role):
    name, _, elsewhere = role.partition(" of ")
    center = make_room().center if elsewhere else room.center
    with pytest.raises(InvalidRequest) as refused:
        in_the_evening(room, None if role == "customer" else staff(name, center))
    assert list(refused.value.fields) == ["hours_override_reason"]
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        (lambda room: make_draft(room=room, start=START + 7 * HOUR, hours=2), "taken"),
        (lambda room: close(room), "closed at that time"),
        (lambda room: type(room).objects.update(is_blocked=True), "cannot be booked"),
    ],
    ids=["reservation", "closure", "blocked room"],
)
def test_hours_override_does_not_allow_other_obstacles(room, manager, obstacle, reason):
    obstacle(room)
    with pytest.raises(SlotUnavailable, match=reason):
        # From an hour before the closing time until two hours after it.
        in_the_evening(room, manager, start=EVENING - 2 * HOUR)


def test_checkout_of_overridden_draft_in_later_closure_is_refused(room, manager):
    made = in_the_evening(room, manager)
    close(room)
    with pytest.raises(SlotUnavailable):
        checkout.check_out(Act(made.user, NOW), made.pk, payment_method=make_payment_method())


def test_hours_override_within_hours_keeps_no_reason(room, staff):
    """Nothing is overridden, so no permission is needed."""
    made = in_the_evening(room, staff("Desk", room.center), start=START)
    assert made.hours_override_reason == ""
    assert not history.get_changes(made).exists()


def test_overridden_reservation_moved_to_other_room_keeps_override(room, manager):
    made = in_the_evening(room, manager)
    other = type(room).objects.create(
        center=room.center,
        name="Attic",
        resource_type=room.resource_type,
        capacity=8,
        rate=room.rate,
    )
    amendments.amend(
        Act(manager, NOW, is_staff=True), made.pk, ChangeRequest(other.pk, made.start, made.end)
    )
    made.refresh_from_db()
    assert made.room == other
    assert made.hours_override_reason == REASON


def test_overridden_reservation_moved_to_other_time_is_refused(room, manager):
    made = in_the_evening(room, manager)
    with pytest.raises(SlotUnavailable):
        amendments.amend(
            Act(manager, NOW, is_staff=True),
            made.pk,
            ChangeRequest(room.pk, made.start + HOUR, made.end + HOUR),
        )


def test_overridden_reservation_moved_into_hours_drops_reason(room, manager):
    made = in_the_evening(room, manager)
    amendments.amend(
        Act(manager, NOW, is_staff=True), made.pk, ChangeRequest(room.pk, START, START + 3 * HOUR)
    )
    made.refresh_from_db()
    assert made.hours_override_reason == ""
    assert history.get_changes(made).first().changes["hours_override_reason"] == [REASON, ""]


def seen(room, user=None, **fields):
    fields = {"start": START, "end": START + 3 * HOUR, **fields}
    return drafts.preview_draft(user, room, now=NOW, **fields)


def test_draft_preview_ignores_own_draft(room):
    made = make_draft(room=room)
    assert seen(room, made.user).is_available
    assert not seen(room).is_available
