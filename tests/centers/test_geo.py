"""Distances and bounding boxes, compared with the haversine formula."""

from math import asin, atan2, cos, degrees, pi, radians, sin, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers import geo
from centers.geo import Coordinates

DENVER = Coordinates(39.7392, -104.9903)

locations = st.builds(Coordinates, st.floats(-90, 90), st.floats(-180, 180))


def haversine(one: Coordinates, other: Coordinates) -> float:
    first, second = radians(one.latitude), radians(other.latitude)
    h = (
        sin((second - first) / 2) ** 2
        + cos(first) * cos(second) * sin(radians(other.longitude - one.longitude) / 2) ** 2
    )
    return 2 * geo.EARTH_RADIUS_MILES * asin(sqrt(min(1.0, h)))


@given(locations, locations)
def test_distance_by_chord_equals_the_great_circle(one, other):
    # Both formulas lose precision for opposite points of the earth.
    assert geo.get_distance_in_miles(one, other) == pytest.approx(haversine(one, other), abs=0.01)


@given(locations, st.floats(0, 1), st.floats(0, 2 * pi), st.floats(1, 500))
def test_bounding_box_contains_locations_reached_from_its_middle(center, share, bearing, miles):
    other = travel(center, share * miles, bearing)
    assert geo.get_bounding_box(center, miles).contains(other)


def travel(start: Coordinates, miles: float, bearing: float) -> Coordinates:
    angle, latitude = miles / geo.EARTH_RADIUS_MILES, radians(start.latitude)
    sine = sin(latitude) * cos(angle) + cos(latitude) * sin(angle) * cos(bearing)
    there = asin(max(-1.0, min(1.0, sine)))
    turn = atan2(sin(bearing) * sin(angle) * cos(latitude), cos(angle) - sin(latitude) * sin(there))
    longitude = (start.longitude + degrees(turn) + 540) % 360 - 180
    return Coordinates(degrees(there), longitude)


def test_bounding_box_wraps_around_the_date_line_and_the_pole():
    assert len(geo.get_bounding_box(Coordinates(0, 179.9), 25).longitudes) == 2
    assert len(geo.get_bounding_box(Coordinates(0, -179.9), 25).longitudes) == 2
    assert geo.get_bounding_box(Coordinates(89.9, 0), 25).longitudes == ((-180.0, 180.0),)
    assert geo.get_bounding_box(DENVER, 25).longitudes != ((-180.0, 180.0),)
