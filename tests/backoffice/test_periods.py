"""Local days in queries: the database finds reservations by the local time of their center."""

import datetime as dt

import pytest

from reservations.local_days import LocalDays, filter_by_local_span
from reservations.models import Reservation
from tests.backoffice.many import many
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, make_room

pytestmark = pytest.mark.django_db

MARCH = LocalDays(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
A_DAY = LocalDays(dt.date(2027, 3, 14), dt.date(2027, 3, 14))  # the clock changes in the States
FAR_APART = ("Pacific/Kiritimati", "Asia/Kolkata", "America/Denver", "Pacific/Pago_Pago")


def begins(period, row):
    day = row.start.astimezone(row.room.center.zone).date()
    return period.first <= day <= period.last


@pytest.mark.parametrize("period", [MARCH, A_DAY])
def test_local_span_filter_finds_reservations_by_local_day(period):
    user, ids = UserFactory(), {}
    for zone in FAR_APART:
        room = make_room(time_zone_id=zone)
        ids[zone] = room.pk
        for day in {period.first, period.last}:
            noon = dt.datetime.combine(day, dt.time(12), tzinfo=dt.UTC)
            for hours in range(-40, 41):
                many(room, user, 1, start=noon + hours * HOUR)
    for zones in (FAR_APART, FAR_APART[1:2], FAR_APART[:2]):
        rooms = [ids[zone] for zone in zones]
        rows = Reservation.objects.filter(room__in=rooms).select_related("room__center")

        found = set(rows.filter(filter_by_local_span(zones, period.span)))

        assert found == {row for row in rows if begins(period, row)}
        assert 0 < len(found) < rows.count()
    assert not Reservation.objects.filter(filter_by_local_span([], period.span)).exists()
