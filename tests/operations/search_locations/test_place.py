"""POST /api/locations/search: location, radius and order"""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from centers import geo
from centers.models import Center
from centers.querysets import SearchCircle
from tests.centers.test_geo import haversine
from tests.factories_centers import make_center_with_room
from tests.operations.search_locations.helpers import DENVER

pytestmark = pytest.mark.django_db

BOSTON = {"Latitude": 42.3601, "Longitude": -71.0589}


@pytest.fixture
def refused(search):
    """The error details of an invalid search."""

    def refused(**fields):
        response = search(**fields)
        assert response.status_code == 400
        assert response.json()["Error"]["Summary"] == "InvalidRequest"
        return response.json()["Error"]["Details"]

    return refused


# --- Place ----------------------------------------------------------------------------------------


@pytest.fixture
def two_cities():
    make_center_with_room(name="Denver center", promo_text="x")
    make_center_with_room(
        name="Boston center",
        city="Boston",
        state="MA",
        postal_code="02108",
        latitude=42.3601,
        longitude=-71.0589,
        time_zone_id="America/New_York",
    )


@pytest.mark.usefixtures("two_cities")
def test_location_without_query_searches_25_miles(names):
    assert names(**BOSTON) == ["Boston center"]
    assert names(Latitude=42.70, Longitude=-71.0589) == ["Boston center"]  # 23.5 miles
    assert names(Latitude=42.73, Longitude=-71.0589) == []  # 25.6 miles
    assert names(Latitude=42.73, Longitude=-71.0589, RadiusInMiles=26) == ["Boston center"]


@pytest.mark.usefixtures("two_cities")
def test_location_with_query_and_no_radius_only_sorts(names, search):
    assert names(**BOSTON, Query="Denver") == ["Denver center"]
    assert names(**BOSTON, Query="center") == ["Boston center", "Denver center"]
    assert names(**DENVER, Query="center") == ["Denver center", "Boston center"]
    distances = [
        each["DistanceFromQuery"] for each in search(**BOSTON, Query="center").json()["Centers"]
    ]
    assert distances == [0, pytest.approx(1766.5, abs=3)]


@pytest.mark.usefixtures("two_cities")
def test_location_query_and_radius_combine(names):
    assert names(**BOSTON, Query="Denver", RadiusInMiles=500) == []
    assert names(**BOSTON, Query="center", RadiusInMiles=1) == ["Boston center"]


@pytest.mark.usefixtures("two_cities")
def test_search_without_location_has_no_distances(search):
    assert all("DistanceFromQuery" not in each for each in search().json()["Centers"])


def test_center_without_coordinates_comes_last(search):
    make_center_with_room(name="Lost", latitude=None, longitude=None)
    make_center_with_room(name="Near")
    first, last = search(**DENVER, Query="denver").json()["Centers"]
    assert (first["Name"], last["Name"]) == ("Near", "Lost")
    assert "DistanceFromQuery" not in last


def test_search_crosses_the_date_line(names):
    make_center_with_room(
        name="West", latitude=-16.8, longitude=179.95, time_zone_id="Pacific/Fiji"
    )
    make_center_with_room(
        name="East", latitude=-16.8, longitude=-179.9, time_zone_id="Pacific/Fiji"
    )
    assert names(Latitude=-16.8, Longitude=180) == ["West", "East"]
    assert names(Latitude=-16.8, Longitude=-180) == ["West", "East"]


def test_search_around_a_pole_finds_all_longitudes(names):
    make_center_with_room(name="Pole", latitude=89.9, longitude=10, time_zone_id="UTC")
    assert names(Latitude=89.9, Longitude=-170) == ["Pole"]
    assert names(Latitude=90, Longitude=0) == ["Pole"]


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"Latitude": 1}, "Longitude: Latitude and Longitude come together."),
        ({"Longitude": 1}, "Latitude: Latitude and Longitude come together."),
        ({"Latitude": 91, "Longitude": 0}, "Latitude: Must be at most 90."),
        ({"Latitude": 0, "Longitude": -181}, "Longitude: Must be at least -180."),
        ({"Latitude": "1", "Longitude": 0}, "Latitude: Must be a number."),
        ({"Latitude": True, "Longitude": 0}, "Latitude: Must be a number."),
        ({**DENVER, "RadiusInMiles": 0}, "RadiusInMiles: Must be at least 1."),
        ({**DENVER, "RadiusInMiles": 501}, "RadiusInMiles: Must be at most 500."),
        ({**DENVER, "RadiusInMiles": 1.5}, "RadiusInMiles: Must be a whole number."),
        ({"Query": "x" * 201}, "Query: Must have at most 200 characters."),
        ({"Query": "a b c d e f g h i"}, "Query: A query has at most 8 words."),
        ({"Query": 5}, "Query: Must be text."),
        ({"Filters": []}, "Filters: Must be an object."),
        (
            {"Filters": {"CapacityLow": 5, "CapacityHigh": 4}},
            "Filters.CapacityLow: This is above CapacityHigh.",
        ),
        ({"Filters": {"CapacityLow": -1}}, "Filters.CapacityLow: Must be at least 0."),
        ({"Filters": {"ServiceIds": [0]}}, "Filters.ServiceIds.0: Must be at least 1."),
        (
            {"Filters": {"ServiceIds": [1] * 101}},
            "Filters.ServiceIds: Must have at most 100 elements.",
        ),
        ({"Filters": {"OnlyRealtime": 1}}, "Filters.OnlyRealtime: Must be true or false."),
    ],
)
def test_invalid_fields_are_rejected_by_name(refused, fields, details):
    assert refused(**fields) == details


def test_fields_at_their_bounds_are_accepted(names):
    make_center_with_room(name="Center")
    assert names(**DENVER, RadiusInMiles=500, Query="c e n t e r c e") == ["Center"]
    assert names(Query="x" * 200) == []


# --- Order ----------------------------------------------------------------------------------------


def test_order_with_location_is_nearest_first(names):
    make_center_with_room(name="Far", latitude=39.9, rank=1)
    make_center_with_room(name="Near", latitude=39.75, rank=2)
    assert names(**DENVER) == ["Near", "Far"]
    assert names(**DENVER, Query="denver") == ["Near", "Far"]


# --- Against a plain reading of the rule ----------------------------------------------------------


@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6),
    st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
    st.integers(1, 500),
)
def test_circle_finds_exactly_the_centers_within_the_radius(
    transactional_places, spots, around, radius
):
    here = geo.Coordinates(*around)
    near = transactional_places(spots, here, radius)
    miles = [haversine(here, geo.Coordinates(*spot)) for spot in spots]
    wanted = sorted(
        (distance, index) for index, distance in enumerate(miles) if distance < radius - 0.001
    )
    possible = {index for index, distance in enumerate(miles) if distance <= radius + 0.001}
    assert {index for _, index in wanted} <= set(near) <= possible
    distances = [miles[index] for index in near]
    assert distances == pytest.approx(sorted(distances), abs=0.01)


@pytest.fixture
def transactional_places():
    """Replace all centers by these, and return which of them are in the circle."""

    def ask(spots, here, radius):
        rows = []
        for index, (latitude, longitude) in enumerate(spots):
            row = Center(
                name=str(index), latitude=latitude, longitude=longitude, time_zone_id="UTC"
            )
            row.update_search_columns()
            rows.append(row)
        Center.objects.all().delete()
        Center.objects.bulk_create(rows)
        found = Center.objects.within(SearchCircle.around(here, radius)).by_distance(here.vector)
        return [int(center.name) for center in found]

    return ask


def test_large_circle_returns_the_nearest_centers(names, settings):
    """The nearest centers fill the page."""
    for miles in (0, 10, 60, 130, 300, 450):
        make_center_with_room(
            name=f"At {miles}", latitude=39.7392 - miles / 69.1, longitude=-104.9903
        )
    expected = [f"At {miles}" for miles in (0, 10, 60, 130, 300, 450)]
    for limit in range(1, 7):
        settings.SEARCH_MAX_RESULTS = limit
        assert names(**DENVER, RadiusInMiles=500) == expected[:limit]
        assert names(**DENVER, RadiusInMiles=100) == expected[:3][:limit]
