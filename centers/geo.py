"""Distances in miles, and the bounding box of a circle, which an index can search.

A location is stored as a unit vector. The squared chord (straight line) between two vectors grows
with the distance on the ground. So sorting by it is exact and needs only additions and products: it
gives the same result on every database, across the date line and at the poles.
"""

from dataclasses import dataclass
from math import asin, cos, degrees, pi, radians, sin, sqrt
from typing import NamedTuple

EARTH_RADIUS_MILES = 3958.7613
# Widens the box by some meters, so that rounding never excludes a location on the circle's edge.
BOX_MARGIN_DEGREES = 1e-4


class UnitVector(NamedTuple):
    """A location as a point on the unit sphere."""

    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A location in degrees."""

    latitude: float
    longitude: float

    @property
    def vector(self) -> UnitVector:
        # Rounded to a centimeter: PostgreSQL raises an error for products of almost-zero numbers.
        latitude = radians(round(self.latitude, 7))
        longitude = radians(round(self.longitude, 7))
        return UnitVector(
            cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)
        )


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """Ranges of latitude and longitude. A box across the date line has two ranges of longitude."""

    south: float
    north: float
    longitudes: tuple[tuple[float, float], ...]

    def contains(self, location: Coordinates) -> bool:
        return self.south <= location.latitude <= self.north and any(
            west <= location.longitude <= east for west, east in self.longitudes
        )


def get_bounding_box(middle: Coordinates, miles: float) -> BoundingBox:
    """The smallest box that contains the circle. Near a pole it goes all the way around."""
    angle = miles / EARTH_RADIUS_MILES
    height = degrees(angle) + BOX_MARGIN_DEGREES
    south, north = middle.latitude - height, middle.latitude + height
    if south <= -90 or north >= 90 or angle >= pi / 2:
        return BoundingBox(max(south, -90.0), min(north, 90.0), ((-180.0, 180.0),))
    ratio = sin(angle) / cos(radians(middle.latitude))
    width = degrees(asin(min(1.0, ratio))) + BOX_MARGIN_DEGREES
    west, east = middle.longitude - width, middle.longitude + width
    longitudes: tuple[tuple[float, float], ...]
    if west < -180:
        longitudes = ((-180.0, east), (west + 360, 180.0))
    elif east > 180:
        longitudes = ((west, 180.0), (-180.0, east - 360))
    else:
        longitudes = ((west, east),)
    return BoundingBox(south, north, longitudes)


def squared_chord_from_miles(miles: float) -> float:
    return (2 * sin(min(miles / EARTH_RADIUS_MILES, pi) / 2)) ** 2


def miles_from_squared_chord(squared_chord: float) -> float:
    return 2 * EARTH_RADIUS_MILES * asin(min(1.0, sqrt(max(squared_chord, 0.0)) / 2))


def get_distance_in_miles(one: Coordinates, other: Coordinates) -> float:
    squared_chord = sum((a - b) ** 2 for a, b in zip(one.vector, other.vector, strict=True))
    return miles_from_squared_chord(squared_chord)
