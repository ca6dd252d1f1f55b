"""Searches find the same centers and filter options as a plain loop over all centers does."""

import itertools

import pytest

from centers import rates, search
from centers.geo import Coordinates
from centers.models import Center
from centers.search import NO_FILTERS, AreaType, SearchFilters
from tests import factories_centers as make
from tests.centers.test_geo import haversine
from tests.factories_people import UserFactory

pytestmark = pytest.mark.django_db

DENVER = Coordinates(39.7392, -104.9903)


@pytest.fixture
def user():
    return UserFactory()


@pytest.fixture
def room_types():
    return [make.ResourceTypeFactory(name=name) for name in ("Boardroom", "Desk")]


@pytest.fixture
def coffee(room_types):
    """Twelve centers at growing distances. Some have no room to book, another city or no coffee."""
    coffee = make.ServiceTypeFactory(name="Coffee")
    neighborhoods = [make.NeighborhoodFactory(name=name) for name in ("Heights", "Lowlands")]
    for number in range(12):
        center = make.CenterFactory(
            name=f"Center {number}",
            city="Denver" if number % 5 else "Boulder",
            street1="Denver Road",
            latitude=DENVER.latitude + number * 0.2,
            longitude=DENVER.longitude,
            neighborhood=(*neighborhoods, None)[number % 3],
            rank=12 - number,
            is_active=number != 4,
            is_after_hours_support_enabled=number % 2 == 0,
        )
        # The first center of each neighborhood has no active room.
        make.MeetingRoomFactory(
            center=center,
            is_active=number > 1,
            resource_type=room_types[number % 4 == 0],
            capacity=4 + number,
        )
        if number % 2:
            make.ServiceFactory(center=center, resource_type=coffee)
    return coffee


def list_filters(room_types, coffee):
    return [
        NO_FILTERS,
        SearchFilters(capacity_low=8),
        SearchFilters(resource_type_ids=frozenset([room_types[1].pk])),
        SearchFilters(service_ids=frozenset([coffee.pk]), capacity_high=10, only_after_hours=False),
        SearchFilters(only_after_hours=True, only_realtime=True),
    ]


# --- The reference -------------------------------------------------------------------------------


def get_rooms(center):
    return [room for room in center.rooms.all() if room.is_active and rates.is_usable(room.rate)]


def list_centers():
    """The centers with a room to book, by rank."""
    centers = Center.objects.select_related("neighborhood").prefetch_related(
        "rooms__rate", "rooms__resource_type", "services__resource_type"
    )
    return [center for center in centers.by_rank() if center.is_active and get_rooms(center)]


def meets_filters(center, filters):
    low, high = filters.capacity_low, filters.capacity_high
    has_room = any(
        (low is None or room.capacity >= low)
        and (high is None or room.capacity <= high)
        and (not filters.resource_type_ids or room.resource_type_id in filters.resource_type_ids)
        and (room.is_live_inventory or not filters.only_realtime)
        for room in get_rooms(center)
    )
    services = {service.resource_type_id for service in center.services.all()}
    return (
        has_room
        and filters.service_ids <= services
        and (center.is_after_hours_support_enabled or not filters.only_after_hours)
    )


def collect_options(centers):
    room_types = {room.resource_type.name for center in centers for room in get_rooms(center)}
    services = {each.resource_type.name for center in centers for each in center.services.all()}
    neighborhoods = {center.neighborhood.name for center in centers if center.neighborhood}
    return [sorted(room_types), sorted(services), sorted(neighborhoods)]


def get_distance(center):
    return haversine(DENVER, Coordinates(center.latitude, center.longitude))


# --- The searches --------------------------------------------------------------------------------


def get_option_names(result):
    options = result.filter_options
    lists = [options.room_types, options.services, options.neighborhoods]
    return [[each.name for each in each_list] for each_list in lists]


@pytest.mark.parametrize("limit", [1, 50])
def test_search_locations_finds_what_a_plain_loop_finds(user, room_types, coffee, settings, limit):
    settings.SEARCH_MAX_RESULTS = limit
    circles = [(None, None), (DENVER, 10), (DENVER, 500)]
    searches = itertools.product(circles, ("", "boulder", "e"), list_filters(room_types, coffee))
    for (coordinates, miles), query, filters in searches:
        result = search.search_locations(
            user, coordinates=coordinates, radius_in_miles=miles, query=query, filters=filters
        )
        matches = [
            center
            for center in list_centers()
            if query in center.search_text and (miles is None or get_distance(center) <= miles)
        ]
        if coordinates:
            matches.sort(key=get_distance)
        else:
            matches.sort(key=lambda center: center.city_folded != query)
        expected = [center.pk for center in matches if meets_filters(center, filters)]
        case = (coordinates, miles, query, filters)
        assert [center.id for center in result.centers] == expected[:limit], case
        assert get_option_names(result) == collect_options(matches), case


@pytest.mark.parametrize("limit", [1, 50])
@pytest.mark.parametrize(
    "area",
    [
        {"city_name": "Denver"},
        {"city_name": "boulder"},
        {"city_name": "Denver", "area": "Lowlands", "area_type": AreaType.NEIGHBORHOOD},
        {"area": "LOWLANDS", "area_type": AreaType.NEIGHBORHOOD},
        {"area": "colorado", "area_type": AreaType.STATE},
        {"area": "usa", "area_type": AreaType.COUNTRY},
        {"area": "Boulder", "area_type": AreaType.CITY},
    ],
)
def test_list_city_centers_finds_what_a_plain_loop_finds(
    user, room_types, coffee, settings, limit, area
):
    settings.SEARCH_MAX_RESULTS = limit
    city = area.get("city_name") or (area["area"] if area["area_type"] == AreaType.CITY else "")
    neighborhood = area.get("area", "") if area.get("area_type") == AreaType.NEIGHBORHOOD else ""
    for filters in list_filters(room_types, coffee):
        result = search.list_city_centers(user, filters=filters, **area)
        matches = [
            center
            for center in list_centers()
            if city.lower() in {"", center.city_folded}
            and neighborhood.lower() in {"", str(center.neighborhood).lower()[: len(neighborhood)]}
        ]
        expected = [center.pk for center in matches if meets_filters(center, filters)]
        assert [center.id for center in result.centers] == expected[:limit], filters
        assert get_option_names(result) == collect_options(matches), filters


@pytest.mark.parametrize(
    ("area_type", "area"), [(AreaType.COUNTRY, "Atlantis"), (AreaType.NEIGHBORHOOD, "Nowhere")]
)
def test_list_city_centers_of_an_unknown_area_finds_nothing(user, coffee, area_type, area):
    result = search.list_city_centers(user, area_type=area_type, area=area)
    assert list(result.centers) == []
    assert get_option_names(result) == [[], [], []]
