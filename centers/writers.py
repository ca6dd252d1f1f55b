"""Centers as their serializers write them, by plain functions: nine tenths of a search were fields.

The fast path of every answer that holds a CenterInfoFull. It says what `CenterInfoFull` in
serializers.py says, which documents it, sorts CSV columns and is what tests hold it to.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings

from centers import rates
from centers.rates import TierPrice
from centers.records import CenterRecord, ImageRecord, RateRecord, RoomRecord, ServiceRecord
from roombook.api.serializers import to_json_number
from roombook.api.urls import build_absolute_url

Told = dict[str, Any]


# Of these, what says "nothing" or "no" is told, too: 0, false, an empty list.
TOLD_ANYWAY = {bool, int, float, list}


def told(fields: Told) -> Told:
    """The fields that have a value: null, empty text and empty objects are left out."""
    return {name: value for name, value in fields.items() if value or type(value) in TOLD_ANYWAY}


class Telling:
    """What all of an answer has in common, asked once: its host, its currency, its language."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.root = build_absolute_url(request, "/")
        self.money = settings.CURRENCY, settings.LOCALE

    def address(self, url: str) -> str:
        if url.startswith("/"):
            return self.root + url.lstrip("/")
        return build_absolute_url(self.request, url)

    def priced(self, rate: RateRecord | None) -> "Priced":
        return NOT_PRICED if rate is None else _priced(rate, *self.money)


class Priced(NamedTuple):
    """What is told of a rate: its RateInfo, and the entry price, in words and to compare."""

    info: Told | None
    text: str
    entry: TierPrice | None


NOT_PRICED = Priced(None, "", None)


def center_full(center: CenterRecord, telling: Telling, services: list[Told] | None = None) -> Told:
    """A CenterInfoFull; `services`: those of the center, where they are written already."""
    row = center.row
    if services is None:
        services = [service_info(each, telling) for each in center.services_on_offer]
    pictures = [picture(each, telling) for each in center.images]
    lowest = rates.pick_lowest_price(
        telling.priced(room.rate).entry for room in center.rooms_on_offer
    )
    return told(
        {
            "Id": row.id,
            "Name": row.name,
            "Address": told(
                {
                    "Street1": row.street1,
                    "Street2": row.street2,
                    "Street3": row.street3,
                    "City": row.city,
                    "State": row.state,
                    "PostalCode": row.postal_code,
                    "Country": row.country,
                    "Latitude": row.latitude,
                    "Longitude": row.longitude,
                    "TimeZoneId": row.time_zone_id,
                    "HasStreet2": center.has_street2,
                    "CityStatePostalCode": center.city_state_postal_code,
                }
            ),
            "Image": pictures[0] if pictures else None,
            "CenterHours": [
                {"Value": value, "DisplayValue": display} for value, display in center.hours
            ],
            "CenterHoursConcatenated": center.center_hours_concatenated,
            "DistanceFromQuery": center.distance_from_query,
            "LowestRate": "" if lowest is None else str(lowest),
            "PromoText": row.promo_text,
            "IsFavorite": row.is_favorite,
            "IsLiveInventory": center.is_live_inventory,
            "IsAfterHoursSupportEnabled": row.is_after_hours_support_enabled,
            "IsNotFavorite": center.is_not_favorite,
            "MeetingRooms": [room_info(each, services, telling) for each in center.meeting_rooms],
            "Landmarks": [
                told({"Name": each.name, "Description": each.description, "Type": each.type})
                for each in center.landmarks
            ],
            "Images": pictures,
            "ParkingInformation": row.parking_information,
            "IsNewLocation": row.is_new_location,
            "IsNewLowPrice": row.is_new_low_price,
        }
    )


def room_info(room: RoomRecord, services: list[Told], telling: Telling) -> Told:
    """A MeetingRoomInfo; the rooms of a center share its services, which are written once."""
    price = telling.priced(room.rate)
    return told(
        {
            "Id": room.id,
            "Name": room.name,
            "AvailableServices": services,
            "Rate": price.info,
            "LowestRate": price.text,
            "Capacity": room.capacity,
            "IsLiveInventory": room.is_live_inventory,
            "Picture": picture(ImageRecord(room.picture, room.picture_thumbnail), telling),
            "Provider": room.provider,
        }
    )


def service_info(service: ServiceRecord, telling: Telling) -> Told:
    price = telling.priced(service.rate)
    return told(
        {
            "Id": service.id,
            "Name": service.name,
            "Description": service.description,
            "Rate": price.info,
            "RateDescription": price.text,
            "BillAtCenter": service.bill_at_center,
            "MinimumBooking": service.minimum_booking,
            "NeedsDuration": service.needs_duration,
            "NeedsQuantity": service.needs_quantity,
        }
    )


def picture(image: ImageRecord, telling: Telling) -> Told:
    return told(
        {
            "ThumbnailUrl": image.thumbnail and telling.address(image.thumbnail),
            "FullUrl": image.image and telling.address(image.image),
        }
    )


# Of the values of a rate, not of its row: never out of date, and few prices are told often.
# Whoever gets the RateInfo only reads it.
@lru_cache(maxsize=4096)
def _priced(rate: RateRecord, currency: str, locale: str) -> Priced:
    tiers = {
        "FlatRate": rate.flat_rate,
        "Hourly": rate.hourly,
        "HalfDay": rate.half_day,
        "FullDay": rate.full_day,
        "SetupFee": rate.setup_fee,
    }
    info = told(
        {
            "IsFlatRate": rate.is_flat_rate,
            **{
                name: None if amount is None else to_json_number(amount)
                for name, amount in tiers.items()
            },
            "BillInBlocks": rate.bill_in_blocks,
            "Description": rate.description_for_customers,
        }
    )
    return Priced(info, rates.format_entry_price(rate), rates.get_entry_price(rate))
