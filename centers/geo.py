"""Where on the globe: distances in miles, and the box around a circle that an index can find.

A place is kept as a unit vector: the squared straight line (chord) between two such vectors grows
with the distance along the ground, so it orders places exactly by additions and products alone,
the same on every database, across the date line and at the poles.
"""

from dataclasses import dataclass
from math import asin, cos, degrees, pi, radians, sin, sqrt
from typing import NamedTuple

EARTH_RADIUS_MILES = 3958.7613
# Widens the box by some metres, so that rounding never loses a place on the rim of the circle.
BOX_MARGIN_DEGREES = 1e-4


class UnitVector(NamedTuple):
    """A place as a point on the unit sphere."""

    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A point on the globe, in degrees."""

    latitude: float
    longitude: float

    @property
    def vector(self) -> UnitVector:
        # To a centimeter: products of numbers next to nothing are an error in PostgreSQL.
        latitude = radians(round(self.latitude, 7))
        longitude = radians(round(self.longitude, 7))
        return UnitVector(
            cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)
        )


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """Latitudes and longitudes that hold a circle; longitudes are one range, or two across ±180."""

    south: float
    north: float
    longitudes: tuple[tuple[float, float], ...]

    def contains(self, place: Coordinates) -> bool:
        return self.south <= place.latitude <= self.north and any(
            west <= place.longitude <= east for west, east in self.longitudes
        )


def get_bounding_box(center: Coordinates, miles: float) -> BoundingBox:
    """The smallest box that surely holds the circle; near a pole it goes all the way around."""
    angle = miles / EARTH_RADIUS_MILES
    reach = degrees(angle) + BOX_MARGIN_DEGREES
    south, north = center.latitude - reach, center.latitude + reach
    if south <= -90 or north >= 90 or angle >= pi / 2:
        return BoundingBox(max(south, -90.0), min(north, 90.0), ((-180.0, 180.0),))
    ratio = sin(angle) / cos(radians(center.latitude))
    width = degrees(asin(min(1.0, ratio))) + BOX_MARGIN_DEGREES
    west, east = center.longitude - width, center.longitude + width
    longitudes: tuple[tuple[float, float], ...]
    if west < -180:
        longitudes = ((-180.0, east), (west + 360, 180.0))
    elif east > 180:
        longitudes = ((west, 180.0), (-180.0, east - 360))
    else:
        longitudes = ((west, east),)
    return BoundingBox(south, north, longitudes)


def squared_chord_from_miles(miles: float) -> float:
    """The squared chord of a distance along the ground."""
    return (2 * sin(min(miles / EARTH_RADIUS_MILES, pi) / 2)) ** 2


def miles_from_squared_chord(squared: float) -> float:
    """The distance along the ground of a squared chord."""
    return 2 * EARTH_RADIUS_MILES * asin(min(1.0, sqrt(max(squared, 0.0)) / 2))


def calculate_squared_chord(one: UnitVector, other: UnitVector) -> float:
    return (one.x - other.x) ** 2 + (one.y - other.y) ** 2 + (one.z - other.z) ** 2


def calculate_distance_miles(one: Coordinates, other: Coordinates) -> float:
    """Great-circle miles."""
    return miles_from_squared_chord(calculate_squared_chord(one.vector, other.vector))
