"""The holds of drafts: extended by staff, and never more than a customer may have."""

import pytest

from accounts.act import Act
from centers.models import Rate
from reservations.booking.drafts import extend_hold
from reservations.models import Reservation, history
from roombook.errors import InvalidRequest, ReservationNotOpen, SlotUnavailable
from tests.factories_centers import ClosureFactory
from tests.factories_reservations import DAY, HOUR, MINUTE, NOW, START, make_booking, make_draft

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


@pytest.mark.parametrize("until", [NOW + DAY + MINUTE, NOW + 10 * MINUTE, NOW - MINUTE])
def test_extend_hold_outside_its_bounds_is_refused(clerk, until):
    reservation = make_draft()

    with pytest.raises(InvalidRequest):
        extend_hold(Act(clerk, NOW, is_staff=True), reservation.pk, until=until)


def test_extend_expired_hold_with_available_room_holds_again(clerk):
    reservation = make_draft()
    later = NOW + HOUR
    extend_hold(Act(clerk, later, is_staff=True), reservation.pk, until=later + HOUR)
    assert Reservation.objects.get().is_held_at(later)


@pytest.mark.parametrize(("ended_for", "total"), [(DAY, 75), (DAY + MINUTE, 90)])
def test_extend_hold_of_draft_reprices_it_a_day_after_its_hold(clerk, ended_for, total):
    reservation = make_draft(start=START + 7 * DAY)
    Rate.objects.update(hourly=30)
    now = NOW + 15 * MINUTE + ended_for

    extended = extend_hold(Act(clerk, now, is_staff=True), reservation.pk, until=now + MINUTE)

    assert extended.total_cost == total
    recorded = [each.changes.get("total_cost") for each in history.get_changes(reservation)]
    assert (["75.00", "90.00"] in recorded) == (total == 90)


def test_extend_expired_hold_with_taken_room_is_refused(clerk):
    reservation = make_draft()
    later = NOW + HOUR
    ClosureFactory(center=reservation.room.center, starts_at=START, ends_at=START + HOUR)

    with pytest.raises(SlotUnavailable):
        extend_hold(Act(clerk, later, is_staff=True), reservation.pk, until=later + HOUR)


def test_extend_hold_of_reservation_that_is_no_draft_is_refused(clerk):
    with pytest.raises(ReservationNotOpen):
        extend_hold(Act(clerk, NOW, is_staff=True), make_booking().pk, until=NOW + HOUR)
