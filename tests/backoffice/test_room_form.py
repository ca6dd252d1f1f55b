"""The form of a room: rates of the selected center, and the defaults of booking rules."""

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from centers.models import MeetingRoom
from tests.admin_forms import errors_of, form_of
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
)
from tests.factories_reservations import make_room

pytestmark = pytest.mark.django_db

ADD = reverse("admin:centers_meetingroom_add")
CHOICES = reverse("admin:centers_rate_choices")


def rates_of(page):
    return list(page.context["adminform"].form.fields["rate"].queryset)


def new_room(office, center, kind):
    fields = {"name": "Aspen", "capacity": "8", "center": center.pk, "resource_type": kind.pk}
    return form_of(office.get(ADD)) | fields


def test_room_is_added_with_a_rate_of_its_center(office):
    center, other = CenterFactory(), CenterFactory()
    rate, foreign = RateFactory(center=center), RateFactory(center=other)
    typed = new_room(office, center, ResourceTypeFactory())

    for query, rates in (({}, []), ({"center": center.pk}, [rate]), ({"center": "abc"}, [])):
        assert rates_of(office.get(ADD, query)) == rates
    refused = office.post(ADD, {**typed, "rate": foreign.pk})
    assert set(errors_of(refused)) == {"rate"}
    assert rates_of(refused) == [rate]
    assert errors_of(office.post(ADD, {**typed, "rate": rate.pk})) == {}
    assert MeetingRoom.objects.get().rate == rate


def test_rate_choices_are_those_of_a_visible_center(client, office, staff):
    mine, other = make_room(), make_room()
    names = [[mine.rate.pk, str(mine.rate)]]
    assert office.get(CHOICES, {"center": mine.center_id}).json() == {"choices": names}
    assert office.get(CHOICES, {"center": "²"}).json() == {"choices": []}
    client.force_login(staff("Manager", mine.center))
    assert client.get(CHOICES, {"center": mine.center_id}).json() == {"choices": names}
    assert client.get(CHOICES, {"center": other.center_id}).json() == {"choices": []}
    assert rates_of(client.get(ADD, {"center": other.center_id})) == []


def test_rates_of_services_are_not_offered_for_rooms_nor_the_other_way_round(office):
    room = make_room()
    center, shared = room.center, RateFactory(center=room.center, name="Shared")
    coffee = ServiceFactory(center=center).rate
    ServiceFactory(center=center, rate=shared)
    MeetingRoomFactory(center=center, rate=shared)
    typed = new_room(office, center, room.resource_type)

    assert set(errors_of(office.post(ADD, {**typed, "rate": coffee.pk}))) == {"rate"}
    assert set(rates_of(office.get(ADD, {"center": center.pk}))) == {room.rate, shared}
    service = reverse("admin:centers_service_add")
    assert set(rates_of(office.get(service, {"center": center.pk}))) == {coffee, shared}
    for relation, rate in (("rooms", room.rate), ("services", coffee)):
        choices = office.get(CHOICES, {"center": center.pk, "for": relation}).json()["choices"]
        assert {pk for pk, _ in choices} == {shared.pk, rate.pk}
    # What a room has can be saved again.
    change = reverse("admin:centers_meetingroom_change", args=[room.pk])
    assert errors_of(office.post(change, form_of(office.get(change)))) == {}
    room.rate = coffee
    with pytest.raises(ValidationError, match="rate"):
        room.full_clean()
