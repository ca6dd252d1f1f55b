"""The fast path of reservations says what the serializers say."""

import json

import pytest
from django.test import RequestFactory

from reservations import records
from reservations.models import Reservation
from reservations.serializers import ReservationInfo
from roombook.api.serializers import ContractSerializer
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


def assert_told_alike(user):
    """As JSON, so that the order of the names counts too."""
    context = {"request": RequestFactory().get("/")}
    found = records.list_records(Reservation.objects.for_user(user).order_by("pk"), user=user)
    for each in found:
        fast = written(ReservationInfo.render(each, context))
        serializer = ReservationInfo.get_shared()
        serializer._context = dict(context)
        assert fast == written(ContractSerializer.to_representation(serializer, each))
        one = records.get_record(each.id, user=user)
        assert written(ReservationInfo.render(one, context)) == fast
    return found


def written(fields):
    return json.dumps(fields, allow_nan=False)


def test_a_reservation_with_everything(client):
    world = World(client)
    removed = ServiceFactory(center=world.center, name="Here today")
    world.reservation.chosen_services.create(service=removed)
    removed.is_active = False
    removed.save()

    (ada,) = assert_told_alike(world.ada)
    assert [each.service_name for each in ada.services if each.selected] == [
        *("Coffee", "Here today", "Projector"),
    ]
    assert ada.allowances
    assert ada.usable_allowances
    assert_told_alike(world.bob)


def test_reservations_of_every_kind():
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

    assert len(assert_told_alike(user)) == 5


def test_nobody_reads_the_reservations_of_others():
    mine = make_draft()
    with pytest.raises(records.NotFound):
        records.get_record(mine.pk, user=UserFactory())
