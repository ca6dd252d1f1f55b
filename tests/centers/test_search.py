"""The fast roads of a search say what its plain questions say."""

import itertools

import pytest

from centers.geo import Coordinates
from centers.models import Center
from centers.querysets import SearchCircle
from centers.search import filter_options, locations
from centers.search.filters import NO_FILTERS, SearchFilters
from tests import factories_centers as make
from tests.factories_people import UserFactory

pytestmark = pytest.mark.django_db

DENVER = Coordinates(39.7392, -104.9903)


@pytest.fixture
def user():
    return UserFactory()


@pytest.fixture
def kinds():
    return [make.ResourceTypeFactory(name=name) for name in ("Boardroom", "Desk")]


@pytest.fixture
def centers(kinds):
    """Twelve, ever farther away: some without a room to book, with one desk, called otherwise."""
    coffee = make.ServiceTypeFactory(name="Coffee")
    parts = [make.NeighborhoodFactory(name=name) for name in ("Heights", "Lowlands")]
    for number in range(12):
        center = make.CenterFactory(
            name=f"Center {number}",
            city="Denver" if number % 5 else "Boulder",
            street1="Denver road",
            latitude=DENVER.latitude + number * 0.2,
            longitude=DENVER.longitude,
            neighborhood=(*parts, None)[number % 3],
            rank=12 - number,
            is_active=number != 4,
            is_after_hours_support_enabled=number % 2 == 0,
        )
        # The first of each neighborhood is one that nobody finds.
        make.MeetingRoomFactory(
            center=center,
            is_active=number > 1,
            resource_type=kinds[number % 4 == 0],
            capacity=4 + number,
        )
        if number % 2:
            make.ServiceFactory(center=center, resource_type=coffee)
    return coffee


def wishes(kinds, coffee):
    return [
        NO_FILTERS,
        SearchFilters(capacity_low=8),
        SearchFilters(resource_type_ids=frozenset([kinds[1].pk])),
        SearchFilters(service_ids=frozenset([coffee.pk]), capacity_high=10, only_after_hours=False),
        SearchFilters(only_after_hours=True, only_realtime=True),
    ]


def asked(kinds, coffee):
    """Every kind of search: where, how far, which words, which filters."""
    places = [(None, None), (DENVER, 10), (DENVER, 500)]
    for (place, miles), query, filters in itertools.product(
        places, ("", "boulder", "e"), wishes(kinds, coffee)
    ):
        yield {"coordinates": place, "radius_in_miles": miles, "query": query, "filters": filters}


def search_plainly(*, coordinates, radius_in_miles, query, filters):
    """The centers, the kinds and the neighborhoods, by questions as simple as they can be."""
    found = Center.objects.listed().containing_words(query.split())
    if coordinates:
        found = found.within(SearchCircle.around(coordinates, radius_in_miles)).by_distance(
            coordinates.vector
        )
    else:
        found = found.by_rank()
    wanted = list(found.meeting(filters))
    if not coordinates:
        wanted.sort(key=lambda center: center.city_folded != query)
    return [center.pk for center in wanted], narrowing_by(found)


def narrowing_by(centers):
    kinds = {room.resource_type.name for center in centers for room in center.rooms_on_offer}
    services = {each.resource_type.name for center in centers for each in center.services_on_offer}
    parts = {center.neighborhood.name for center in centers if center.neighborhood}
    return [sorted(kinds), sorted(services), sorted(parts)]


def options_told(found):
    offered = found.filter_options
    told = [offered.room_types, offered.services, offered.neighborhoods]
    return [[each.name for each in names] for names in told]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("limit", [1, 50])
def test_every_search_says_what_the_plain_questions_say(
    user, kinds, centers, settings, monkeypatch, limit, many
):
    settings.SEARCH_MAX_RESULTS = limit
    if many:
        monkeypatch.setattr(
            filter_options,
            "load_sample",
            lambda *_, **__: [()] * (filter_options.MAX_CENTERS_BY_ID + 1),
        )
    for fields in asked(kinds, centers):
        found = locations.search_locations(user, **fields)
        expected, narrowing = search_plainly(**fields)
        assert [center.id for center in found.centers] == expected[:limit], fields
        assert options_told(found) == narrowing, fields


@pytest.mark.parametrize("limit", [1, 50])
def test_an_area_says_what_the_plain_questions_say(
    user, kinds, centers, settings, monkeypatch, limit
):
    settings.SEARCH_MAX_RESULTS = limit
    monkeypatch.setattr(
        filter_options, "select_sample", lambda _: [()] * (filter_options.MAX_CENTERS_BY_ID + 1)
    )
    for city, filters in itertools.product(("Denver", "Boulder"), wishes(kinds, centers)):
        found = locations.list_city_centers(user, city_name=city, filters=filters)
        listed = Center.objects.listed().in_city(city)
        expected = [center.pk for center in listed.meeting(filters).by_rank()]
        assert [center.id for center in found.centers] == expected[:limit]
        assert options_told(found) == narrowing_by(listed)
