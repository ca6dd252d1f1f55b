"""Centers, rooms and rates as fields of responses, and the search around a location."""

from collections import namedtuple
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from centers import geo, hours, rates
from tests.bench.raw.database import JSONDict, Row, authenticate, fetch_all, get_cursor


def name_fields(names: str, values: Iterable[Any]) -> JSONDict:
    """The fields of a response with their values. Empty ones are left out."""
    pairs = zip(names.split(), values, strict=True)
    return {name: value for name, value in pairs if value not in (None, "", {})}


class RateRow(
    namedtuple(
        "RateRow",
        "is_flat_rate flat_rate hourly half_day full_day setup_fee bill_in_blocks description",
    )
):
    # The data of the benchmark have no price lists.
    special_prices = ()


HoursRow = namedtuple("HoursRow", "weekday opens closes")
RATE = ", ".join(f"t.{name}" for name in RateRow._fields)
USABLE = (
    "((t.is_flat_rate AND t.flat_rate IS NOT NULL) OR (NOT t.is_flat_rate AND"
    " (t.hourly IS NOT NULL OR t.half_day IS NOT NULL OR t.full_day IS NOT NULL)))"
)
CENTER = (
    "c.id, c.name, c.street1, c.street2, c.street3, c.city, c.state, c.postal_code, c.country,"
    " c.latitude, c.longitude, c.time_zone_id, c.promo_text, c.is_after_hours_support_enabled,"
    " c.parking_information, c.is_new_location, c.is_new_low_price"
)
FAVORITE = "EXISTS (SELECT FROM centers_favorite f WHERE f.user_id = %s AND f.center_id = c.id)"
RATE_NAMES = "IsFlatRate FlatRate Hourly HalfDay FullDay SetupFee BillInBlocks Description"
ADDRESS_NAMES = (
    "Street1 Street2 Street3 City State PostalCode Country Latitude Longitude TimeZoneId"
    " HasStreet2 CityStatePostalCode"
)
CENTER_NAMES = (
    "Id Name Address Image CenterHours CenterHoursConcatenated DistanceFromQuery LowestRate"
    " PromoText IsFavorite IsLiveInventory IsAfterHoursSupportEnabled IsNotFavorite MeetingRooms"
    " Landmarks Images ParkingInformation IsNewLocation IsNewLowPrice"
)
SERVICE_NAMES = (
    "Id Name Description BillAtCenter MinimumBooking NeedsDuration NeedsQuantity Rate"
    " RateDescription"
)
ROOM_NAMES = "Id Name Capacity IsLiveInventory Provider Picture Rate LowestRate AvailableServices"


@lru_cache(maxsize=4096)
def render_rate(rate: RateRow) -> tuple[JSONDict, str]:
    amounts = (None if amount is None else float(amount) for amount in rate[1:6])
    description = rate.description or rates.describe_rate(rate)
    values = (rate.is_flat_rate, *amounts, rate.bill_in_blocks, description)
    return name_fields(RATE_NAMES, values), rates.format_entry_price(rate)


def get_rate(row: Row) -> Any:
    return None if row[0] is None else RateRow(*row)


def render_rate_of(row: Row) -> tuple[JSONDict | None, str]:
    return (None, "") if row[0] is None else render_rate(RateRow(*row))


def render_picture(root: str, image: str, thumbnail: str) -> JSONDict:
    urls = (path and f"{root}{path}" for path in (thumbnail, image))
    return name_fields("ThumbnailUrl FullUrl", urls)


def render_service(row: Row) -> JSONDict:
    return name_fields(SERVICE_NAMES, (*row[:7], *render_rate_of(row[7:])))


def render_room(row: Row, services: list[JSONDict], root: str) -> JSONDict:
    picture = render_picture(root, *row[5:7])
    return name_fields(ROOM_NAMES, (*row[:5], picture, *render_rate_of(row[7:]), services))


class CenterParts:
    """Everything that responses contain of some centers, read by five statements."""

    def __init__(self, cur: Any, ids: list[int], root: str) -> None:
        def group(sql: str) -> dict[int, list[Row]]:
            groups: dict[int, list[Row]] = {pk: [] for pk in ids}
            for center, *row in fetch_all(cur, sql, (ids,)):
                groups[center].append(row)
            return groups

        self.root = root
        self.services = group(
            f"""SELECT s.center_id, s.id, s.name, s.description, s.bill_at_center,
                       s.minimum_booking, s.needs_duration, s.needs_quantity, {RATE}
                FROM centers_service s LEFT JOIN centers_rate t ON t.id = s.rate_id
                WHERE s.center_id = ANY (%s) AND s.is_active ORDER BY s.position, s.name, s.id"""
        )
        self.rooms = group(
            f"""SELECT r.center_id, r.id, r.name, r.capacity, r.is_live_inventory, r.provider,
                       r.picture, r.picture_thumbnail, {RATE}
                FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE} ORDER BY r.name, r.id"""
        )
        self.hours = group(
            "SELECT center_id, weekday, opens, closes FROM centers_openinghours"
            " WHERE center_id = ANY (%s)"
        )
        self.images = group(
            "SELECT center_id, image, thumbnail FROM centers_centerimage"
            " WHERE center_id = ANY (%s) ORDER BY position, id"
        )
        self.landmarks = group(
            "SELECT center_id, name, description, type FROM centers_landmark"
            " WHERE center_id = ANY (%s) ORDER BY name, id"
        )

    def render_center(self, row: Row, *, favorite: bool, distance: float | None = None) -> JSONDict:
        """Renders a CenterInfoFull from the columns CENTER."""
        pk, name, *address = row[:12]
        promo, after_hours, parking, is_new, low_price = row[12:]
        _, street2, _, city, state, postal_code, *_ = address
        region = " ".join(filter(None, (state, postal_code)))
        address += [bool(street2), ", ".join(filter(None, (city, region)))]
        services = [render_service(each) for each in self.services[pk]]
        week = hours.summarize_week(HoursRow(*each) for each in self.hours[pk])
        images = [render_picture(self.root, *each) for each in self.images[pk]]
        rooms = self.rooms[pk]
        lowest = rates.pick_lowest_price(
            rates.get_entry_price(RateRow(*room[7:])) for room in rooms
        )
        values = (
            *(pk, name, name_fields(ADDRESS_NAMES, address), images[0] if images else None),
            [{"Value": value, "DisplayValue": text} for value, text in week],
            *("; ".join(text for _, text in week), distance, str(lowest or ""), promo, favorite),
            *(any(room[3] for room in rooms), after_hours, not favorite),
            [render_room(room, services, self.root) for room in rooms],
            [name_fields("Name Description Type", each) for each in self.landmarks[pk]],
            *(images, parking, is_new, low_price),
        )
        return name_fields(CENTER_NAMES, values)


TYPE_NAMES = "Id Name IsService Position Internal"
NEIGHBORHOOD_NAMES = (
    "Id OriginalName Name City State CustomTitle LandingPageContent CoworkingLandingPageContent"
)


def search(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    user, _ = authenticate(cur, data, now)
    place = geo.Coordinates(data["Latitude"], data["Longitude"])
    miles = data["RadiusInMiles"]
    box = geo.get_bounding_box(place, miles)
    x, y, z = place.vector
    chord = "((c.x - %s) * (c.x - %s) + (c.y - %s) * (c.y - %s) + (c.z - %s) * (c.z - %s))"
    vector = (x, x, y, y, z, z)
    longitudes = " OR ".join(["c.longitude BETWEEN %s AND %s"] * len(box.longitudes))
    found = fetch_all(
        cur,
        f"""SELECT {CENTER}, {FAVORITE}, {chord} AS chord, c.neighborhood_id
            FROM centers_center c
            WHERE c.is_active AND c.latitude BETWEEN %s AND %s AND ({longitudes})
              AND {chord} <= %s AND EXISTS
                (SELECT FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                 WHERE r.center_id = c.id AND r.is_active AND {USABLE})
            ORDER BY chord, c.rank, c.name_folded, c.id""",
        (
            *(user.pk, *vector, box.south, box.north),
            *(degrees for bounds in box.longitudes for degrees in bounds),
            *(*vector, geo.squared_chord_from_miles(miles)),
        ),
    )
    ids = [row[0] for row in found]
    parts = CenterParts(cur, ids[:50], root)
    centers = [
        parts.render_center(
            row, favorite=favorite, distance=round(geo.miles_from_squared_chord(squared), 2)
        )
        for *row, favorite, squared, _ in found[:50]
    ]
    types = fetch_all(
        cur,
        f"""SELECT id, name, is_service, position, internal FROM centers_resourcetype
            WHERE NOT internal AND id IN
              (SELECT r.resource_type_id FROM centers_meetingroom r
                 JOIN centers_rate t ON t.id = r.rate_id
               WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE}
               UNION SELECT resource_type_id FROM centers_service
               WHERE center_id = ANY (%s) AND is_active)
            ORDER BY position, name, id""",
        (ids, ids),
    )
    neighborhoods = fetch_all(
        cur,
        """SELECT id, original_name, name, city, state, custom_title, landing_page_content,
                  coworking_landing_page_content
           FROM centers_neighborhood WHERE id = ANY (%s) ORDER BY name, id""",
        (list({row[-1] for row in found} - {None}),),
    )
    return {
        "Centers": centers,
        "FilterOptions": {
            "RoomTypes": [name_fields(TYPE_NAMES, row) for row in types if not row[2]],
            "Services": [name_fields(TYPE_NAMES, row) for row in types if row[2]],
            "Neighborhoods": [name_fields(NEIGHBORHOOD_NAMES, row) for row in neighborhoods],
        },
    }
