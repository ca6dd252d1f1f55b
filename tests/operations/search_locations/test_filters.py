"""POST /api/locations/search: filters and their options"""

import pytest

from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    ResourceTypeFactory,
    ServiceFactory,
    ServiceTypeFactory,
    make_center_with_room,
)
from tests.operations.search_locations.helpers import DENVER

pytestmark = pytest.mark.django_db


@pytest.fixture
def filtered(names):
    return lambda **filters: names(Filters=filters)


def test_room_filters_must_be_met_by_the_same_room(filtered):
    small, large = ResourceTypeFactory(), ResourceTypeFactory()
    center = CenterFactory(name="Center")
    MeetingRoomFactory(center=center, capacity=4, resource_type=small, is_live_inventory=True)
    MeetingRoomFactory(center=center, capacity=20, resource_type=large, is_live_inventory=False)
    assert filtered(CapacityLow=20, ResourceTypeIds=[large.pk]) == ["Center"]
    assert filtered(CapacityLow=20, ResourceTypeIds=[small.pk]) == []
    assert filtered(CapacityLow=5, CapacityHigh=19) == []
    assert filtered(CapacityHigh=4, OnlyRealtime=True) == ["Center"]
    assert filtered(CapacityLow=5, OnlyRealtime=True) == []
    assert filtered(ResourceTypeIds=[small.pk, large.pk]) == ["Center"]


def test_center_lists_only_rooms_that_meet_the_filters(search):
    center = CenterFactory()
    MeetingRoomFactory(center=center, name="Small", capacity=4)
    MeetingRoomFactory(center=center, name="Large", capacity=20, is_live_inventory=False)
    MeetingRoomFactory(center=center, name="Inactive", capacity=30, is_active=False)
    MeetingRoomFactory(center=center, name="Unpriced", capacity=30, rate=None)
    (found,) = search(Filters={"CapacityLow": 5}).json()["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large"]
    # The center itself stays what it is.
    assert found["IsLiveInventory"] is True
    (found,) = search().json()["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large", "Small"]


def test_service_filter_requires_all_services(filtered):
    coffee, screen = ServiceTypeFactory(), ServiceTypeFactory()
    center = make_center_with_room(name="Both")
    ServiceFactory(center=center, resource_type=coffee)
    ServiceFactory(center=center, resource_type=coffee)
    ServiceFactory(center=center, resource_type=screen)
    ServiceFactory(center=make_center_with_room(name="Coffee"), resource_type=coffee)
    retired = ServiceTypeFactory()
    ServiceFactory(center=center, resource_type=retired, is_active=False)
    assert filtered(ServiceIds=[coffee.pk]) == ["Both", "Coffee"]
    assert filtered(ServiceIds=[coffee.pk, screen.pk, coffee.pk]) == ["Both"]
    assert filtered(ServiceIds=[retired.pk]) == []
    assert filtered(ServiceIds=[ResourceTypeFactory().pk]) == []
    assert filtered(ServiceIds=[coffee.pk, 2_000_000_000]) == []


def test_neighborhood_filter_accepts_any_of_them(filtered):
    one, other = NeighborhoodFactory(), NeighborhoodFactory()
    make_center_with_room(name="One", neighborhood=one)
    make_center_with_room(name="Other", neighborhood=other)
    make_center_with_room(name="None")
    assert filtered(NeighborhoodIds=[one.pk]) == ["One"]
    assert filtered(NeighborhoodIds=[one.pk, other.pk]) == ["One", "Other"]
    assert filtered(NeighborhoodIds=[2_000_000_000]) == []


def test_after_hours_filter_finds_only_such_centers(filtered):
    make_center_with_room(name="Day")
    make_center_with_room(name="Night", is_after_hours_support_enabled=True)
    assert filtered(OnlyAfterHours=True) == ["Night"]
    assert filtered(OnlyAfterHours=False) == ["Day", "Night"]


def test_empty_filters_and_unknown_fields_are_ignored(filtered):
    make_center_with_room(name="Center")
    empty = {"ResourceTypeIds": [], "ServiceIds": [], "NeighborhoodIds": []}
    assert filtered(**empty, CapacityLow=None) == ["Center"]
    assert filtered(_connector="OR", rooms__reservations__user__password__startswith="p") == [
        "Center"
    ]


def test_filter_options_ignore_the_filters(search):
    boardroom = ResourceTypeFactory(name="Boardroom", position=2)
    desk, attic = (ResourceTypeFactory(name=name, position=1) for name in ("Desk", "Attic"))
    internal = ResourceTypeFactory(name="Storage", internal=True)
    unused = ResourceTypeFactory(name="Unused")
    center = CenterFactory(neighborhood=NeighborhoodFactory(name="LoDo"))
    for kind in (boardroom, desk, attic, internal):
        MeetingRoomFactory(center=center, resource_type=kind)
    MeetingRoomFactory(center=center, resource_type=unused, is_active=False)
    ServiceFactory(center=center, resource_type=ServiceTypeFactory(name="Coffee", position=5))
    ServiceFactory(center=center, resource_type=ServiceTypeFactory(name="Screen", position=4))
    ServiceFactory(
        center=center, resource_type=ServiceTypeFactory(name="Keys", position=1, internal=True)
    )
    make_center_with_room(city="Boston", neighborhood=NeighborhoodFactory(name="Back Bay"))

    body = search(Query="denver", Filters={"CapacityLow": 1000}).json()

    assert body["Centers"] == []
    options = {
        kind: [each["Name"] for each in choices] for kind, choices in body["FilterOptions"].items()
    }
    assert options == {
        "RoomTypes": ["Attic", "Desk", "Boardroom"],
        "Services": ["Screen", "Coffee"],
        "Neighborhoods": ["LoDo"],
    }


def test_filter_options_include_centers_beyond_the_limit(search, settings):
    settings.SEARCH_MAX_RESULTS = 1
    make_center_with_room()
    make_center_with_room()
    body = search().json()
    assert len(body["Centers"]) == 1
    assert len(body["FilterOptions"]["RoomTypes"]) == 2


def test_capacity_high_of_zero_finds_nothing(names):
    make_center_with_room()
    assert names(Filters={"CapacityHigh": 0}) == []
    assert names(**DENVER, RadiusInMiles=500, Filters={"CapacityHigh": 0}) == []


def test_filter_options_are_the_same_for_a_full_page(search, settings):
    for _ in range(3):
        center = make_center_with_room(neighborhood=NeighborhoodFactory())
        ServiceFactory(center=center)
    options = search(**DENVER).json()["FilterOptions"]
    assert len(options["RoomTypes"]) == len(options["Services"]) == 3
    assert len(options["Neighborhoods"]) == 3

    settings.SEARCH_MAX_RESULTS = 1
    assert search(**DENVER).json()["FilterOptions"] == options
    assert search(**DENVER, Filters={"CapacityLow": 99}).json()["FilterOptions"] == options
