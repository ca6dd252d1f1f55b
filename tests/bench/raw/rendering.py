"""Centers, rooms and rates as fields of responses."""

from datetime import time
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from centers import hours, rates
from tests.bench.raw.database import JSONDict, Row, fetch_all


def drop_empty(fields: JSONDict) -> JSONDict:
    return {name: value for name, value in fields.items() if value not in (None, "", {})}


class RateRow(NamedTuple):
    is_flat_rate: bool
    flat_rate: Decimal | None
    hourly: Decimal | None
    half_day: Decimal | None
    full_day: Decimal | None
    setup_fee: Decimal | None
    bill_in_blocks: bool
    description: str


RATE = (
    "t.is_flat_rate, t.flat_rate, t.hourly, t.half_day, t.full_day, t.setup_fee,"
    " t.bill_in_blocks, t.description"
)


USABLE = (
    "((t.is_flat_rate AND t.flat_rate IS NOT NULL) OR (NOT t.is_flat_rate AND"
    " (t.hourly IS NOT NULL OR t.half_day IS NOT NULL OR t.full_day IS NOT NULL)))"
)


@lru_cache(maxsize=4096)
def render_rate(rate: RateRow) -> tuple[JSONDict, str]:
    tiers = {
        "FlatRate": rate.flat_rate,
        "Hourly": rate.hourly,
        "HalfDay": rate.half_day,
        "FullDay": rate.full_day,
        "SetupFee": rate.setup_fee,
    }
    info = {
        "IsFlatRate": rate.is_flat_rate,
        **{name: float(amount) for name, amount in tiers.items() if amount is not None},
        "BillInBlocks": rate.bill_in_blocks,
        "Description": rate.description or rates.describe_rate(rate),
    }
    return info, rates.format_entry_price(rate)


def get_rate(row: Row) -> RateRow | None:
    return None if row[0] is None else RateRow(*row)


def render_picture(root: str, image: str, thumbnail: str) -> JSONDict:
    return drop_empty(
        {
            "ThumbnailUrl": thumbnail and f"{root}{thumbnail}",
            "FullUrl": image and f"{root}{image}",
        }
    )


CENTER = (
    "c.id, c.name, c.street1, c.street2, c.street3, c.city, c.state, c.postal_code, c.country,"
    " c.latitude, c.longitude, c.time_zone_id, c.promo_text, c.is_after_hours_support_enabled,"
    " c.parking_information, c.is_new_location, c.is_new_low_price"
)


FAVORITE = "EXISTS (SELECT FROM centers_favorite f WHERE f.user_id = %s AND f.center_id = c.id)"


class CenterParts:
    """Everything that responses contain of some centers, read by five statements."""

    def __init__(self, cur: Any, ids: list[int], root: str) -> None:
        self.root = root
        self.services: dict[int, list[Row]] = {pk: [] for pk in ids}
        self.rooms: dict[int, list[Row]] = {pk: [] for pk in ids}
        self.hours: dict[int, list[Any]] = {pk: [] for pk in ids}
        self.images: dict[int, list[JSONDict]] = {pk: [] for pk in ids}
        self.landmarks: dict[int, list[JSONDict]] = {pk: [] for pk in ids}
        for row in fetch_all(
            cur,
            f"""SELECT s.center_id, s.id, s.name, s.description, s.bill_at_center,
                       s.minimum_booking, s.needs_duration, s.needs_quantity, {RATE}
                FROM centers_service s LEFT JOIN centers_rate t ON t.id = s.rate_id
                WHERE s.center_id = ANY (%s) AND s.is_active ORDER BY s.position, s.name, s.id""",
            (ids,),
        ):
            self.services[row[0]].append(row)
        for row in fetch_all(
            cur,
            f"""SELECT r.center_id, r.id, r.name, r.capacity, r.is_live_inventory, r.provider,
                       r.picture, r.picture_thumbnail, {RATE}
                FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE} ORDER BY r.name, r.id""",
            (ids,),
        ):
            self.rooms[row[0]].append(row)
        for center, *interval in fetch_all(
            cur,
            """SELECT center_id, weekday, opens, closes FROM centers_openinghours
               WHERE center_id = ANY (%s)""",
            (ids,),
        ):
            self.hours[center].append(HoursRow(*interval))
        for center, image, thumbnail in fetch_all(
            cur,
            """SELECT center_id, image, thumbnail FROM centers_centerimage
               WHERE center_id = ANY (%s) ORDER BY position, id""",
            (ids,),
        ):
            self.images[center].append(render_picture(root, image, thumbnail))
        for center, name, description, kind in fetch_all(
            cur,
            """SELECT center_id, name, description, type FROM centers_landmark
               WHERE center_id = ANY (%s) ORDER BY name, id""",
            (ids,),
        ):
            self.landmarks[center].append(
                drop_empty({"Name": name, "Description": description, "Type": kind})
            )

    def render_center(self, row: Row, *, favorite: bool, distance: float | None = None) -> JSONDict:
        """Renders a CenterInfoFull from the columns CENTER."""
        (pk, name, street1, street2, street3, city, state, postal_code, country) = row[:9]
        (latitude, longitude, zone, promo, after_hours, parking, new, low_price) = row[9:17]
        services = [render_service(each) for each in self.services[pk]]
        week = hours.summarize_week(self.hours[pk])
        images = self.images[pk]
        on_offer = self.rooms[pk]
        region = " ".join(filter(None, (state, postal_code)))
        return drop_empty(
            {
                "Id": pk,
                "Name": name,
                "Address": drop_empty(
                    {
                        "Street1": street1,
                        "Street2": street2,
                        "Street3": street3,
                        "City": city,
                        "State": state,
                        "PostalCode": postal_code,
                        "Country": country,
                        "Latitude": latitude,
                        "Longitude": longitude,
                        "TimeZoneId": zone,
                        "HasStreet2": bool(street2),
                        "CityStatePostalCode": ", ".join(filter(None, (city, region))),
                    }
                ),
                "Image": images[0] if images else None,
                "CenterHours": [{"Value": a, "DisplayValue": b} for a, b in week],
                "CenterHoursConcatenated": "; ".join(b for _, b in week),
                "DistanceFromQuery": distance,
                "LowestRate": str(
                    rates.pick_lowest_price(
                        rates.get_entry_price(RateRow(*r[8:])) for r in on_offer
                    )
                    or ""
                ),
                "PromoText": promo,
                "IsFavorite": favorite,
                "IsLiveInventory": any(room[4] for room in on_offer),
                "IsAfterHoursSupportEnabled": after_hours,
                "IsNotFavorite": not favorite,
                "MeetingRooms": [render_room(room, services, self.root) for room in on_offer],
                "Landmarks": self.landmarks[pk],
                "Images": images,
                "ParkingInformation": parking,
                "IsNewLocation": new,
                "IsNewLowPrice": low_price,
            }
        )


class HoursRow(NamedTuple):
    weekday: int
    opens: time
    closes: time


def render_service(row: Row) -> JSONDict:
    _, pk, name, description, at_center, minimum, needs_duration, needs_quantity, *rate = row
    info, text = render_rate(RateRow(*rate)) if rate[0] is not None else (None, "")
    return drop_empty(
        {
            "Id": pk,
            "Name": name,
            "Description": description,
            "Rate": info,
            "RateDescription": text,
            "BillAtCenter": at_center,
            "MinimumBooking": minimum,
            "NeedsDuration": needs_duration,
            "NeedsQuantity": needs_quantity,
        }
    )


def render_room(row: Row, services: list[JSONDict], root: str) -> JSONDict:
    _, pk, name, capacity, is_live, provider, image, thumbnail, *rate = row
    info, text = render_rate(RateRow(*rate)) if rate[0] is not None else (None, "")
    return drop_empty(
        {
            "Id": pk,
            "Name": name,
            "AvailableServices": services,
            "Rate": info,
            "LowestRate": text,
            "Capacity": capacity,
            "IsLiveInventory": is_live,
            "Picture": render_picture(root, image, thumbnail),
            "Provider": provider,
        }
    )
