"""Reservation records, from which responses are rendered."""

import pytest

from reservations import records
from reservations.models import Reservation
from reservations.serializers import ReservationInfo
from roombook.api.rendering import RenderContext
from roombook.errors import NotFound
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
)
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def assert_listed_as_read_one_by_one(user):
    reservations = Reservation.objects.for_user(user).order_by("pk")
    listed = records.list_records(reservations, user=user)
    context = RenderContext()
    for record in listed:
        alone = records.get_record(record.id, user=user)
        rendered = ReservationInfo.render(record, context)
        assert rendered == ReservationInfo.render(alone, RenderContext())
    return listed


def test_a_selected_service_stays_listed_when_the_center_no_longer_offers_it(client):
    world = World(client)
    removed = ServiceFactory(center=world.center, name="Removed")
    world.reservation.chosen_services.create(service=removed)
    removed.is_active = False
    removed.save()

    records_by_id = {each.id: each for each in assert_listed_as_read_one_by_one(world.ada)}

    record = records_by_id[world.reservation.pk]
    selected = [each.service_name for each in record.services if each.selected]
    assert selected == ["Coffee", "Projector", "Removed"]
    assert record.allowances
    assert record.usable_allowances


def test_reservations_of_every_status_are_listed_as_read_one_by_one():
    user = UserFactory()
    first = make_draft(user)
    make_booking(user, start=first.start + 8 * (first.end - first.start))
    make_pending_booking(user)
    ReservationFactory(user=user)
    bare = make_draft(user, start=first.start + 16 * (first.end - first.start))
    bare.room.rate = None
    bare.room.save()
    AllowanceFactory(user=user, is_automatic=False).centers.add(first.room.center)
    MonthlyAllowanceFactory(user=user)

    assert len(assert_listed_as_read_one_by_one(user)) == 5


def test_get_record_of_another_accounts_reservation_raises_not_found():
    reservation = make_draft()

    with pytest.raises(NotFound):
        records.get_record(reservation.pk, user=UserFactory())
