"""What an owner with an empty database is shown, until the first booking."""

import pytest
from django.urls import reverse

from centers.models import ResourceType
from reservations.models.status import Status
from tests.backoffice.dashboard.helpers import NOW, meeting, seen
from tests.factories_centers import CenterFactory
from tests.factories_people import AdministratorFactory, StaffFactory
from tests.factories_reservations import HOUR, make_room

pytestmark = pytest.mark.django_db


def get_done(user):
    return [step.title for step in seen(user)["first_steps"] if step.is_done]


def test_owner_of_an_empty_database_sees_six_links(client):
    owner = AdministratorFactory()
    client.force_login(owner)
    steps = seen(owner)["first_steps"]
    page = client.get("/admin/").text
    assert [step.is_done for step in steps] == [False] * 6
    for step in steps:
        assert f'href="{step.url}"' in page
        assert client.get(step.url).status_code == 200


def test_steps_are_ticked_when_done(client):
    owner = AdministratorFactory()
    # Nobody can book at a center without opening hours.
    CenterFactory()
    assert get_done(owner) == []
    StaffFactory()
    make_room()
    assert get_done(owner) == [
        *("Types of rooms and services", "A center", "Rooms and their prices", "Staff"),
    ]


def test_steps_disappear_with_the_first_booking_and_are_for_owners_only():
    owner, room = AdministratorFactory(), make_room()
    meeting(room, NOW + HOUR, status=Status.NEW, booked_at=None)
    assert seen(owner)["first_steps"]
    assert seen(StaffFactory())["first_steps"] == []
    meeting(room, NOW + 24 * HOUR)
    assert seen(owner)["first_steps"] == []


def test_usual_types_are_added_by_one_click_and_only_once(client):
    client.force_login(AdministratorFactory())
    address = reverse("admin:centers_resourcetype_samples")
    assert f'action="{address}"' in client.get("/admin/").text
    for _ in range(2):
        client.post(address)
    assert ResourceType.objects.count() == 3
    client.force_login(StaffFactory())
    assert client.post(address).status_code == 403
    assert client.get(address).status_code == 405
