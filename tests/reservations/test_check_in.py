"""Customers are checked in when they arrive (B18.1)."""

import datetime as dt

import pytest

from reservations.booking import approval, check_in
from reservations.models import history
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import HOUR, START, ReservationFactory, make_booking

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)


def test_check_in_is_recorded_and_undone_by_staff():
    reservation, clerk = make_booking(), AdministratorFactory()

    check_in.check_in(reservation.pk, by=clerk, now=START)
    check_in.check_in(reservation.pk, by=clerk, now=START + HOUR)

    reservation.refresh_from_db()
    assert reservation.checked_in_at == START
    assert reservation.is_checked_in
    check_in.undo_check_in(reservation.pk, by=clerk, now=START + HOUR)
    check_in.undo_check_in(reservation.pk, by=clerk, now=START + HOUR)
    reservation.refresh_from_db()
    assert reservation.checked_in_at is None
    entries = list(history.get_changes(reservation)[:2])
    changes = [entry.changes["checked_in_at"] for entry in entries]
    assert changes == [[START.isoformat(), None], [None, START.isoformat()]]
    assert {entry.actor for entry in entries} == {clerk}


@pytest.mark.parametrize(
    "status", sorted({*Status} - {Status.CONFIRMED, Status.COMPLETED}), ids=str
)
def test_check_in_of_meeting_that_is_not_booked_is_refused(status):
    reservation = ReservationFactory(status=status, start=START, end=START + HOUR)

    with pytest.raises(ReservationNotOpen):
        check_in.check_in(reservation.pk, now=START)
    reservation.refresh_from_db()
    assert reservation.checked_in_at is None


def test_check_in_opens_twelve_hours_before_the_start():
    reservation = make_booking()

    with pytest.raises(ReservationNotOpen):
        check_in.check_in(reservation.pk, now=START - 13 * HOUR)
    assert check_in.check_in(reservation.pk, now=START - 12 * HOUR).is_checked_in


def test_check_in_does_not_count_after_moving_to_another_day():
    reservation = make_booking()
    check_in.check_in(reservation.pk, now=START)
    reservation.refresh_from_db()
    reservation.start, reservation.end = START + DAY, START + DAY + HOUR
    reservation.save()

    assert not reservation.is_checked_in
    again = check_in.check_in(reservation.pk, now=START + DAY)
    assert again.checked_in_at == START + DAY


def test_no_show_of_checked_in_customer_is_refused_until_undone():
    reservation = make_booking()
    check_in.check_in(reservation.pk, now=START)

    with pytest.raises(ReservationNotOpen, match="Undo the check-in first"):
        approval.mark_no_show(reservation.pk, now=START + HOUR)
    check_in.undo_check_in(reservation.pk, now=START + HOUR)
    assert approval.mark_no_show(reservation.pk, now=START + HOUR).status == Status.NO_SHOW
