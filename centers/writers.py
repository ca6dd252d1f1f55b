"""Centers as their serializers write them, by plain functions: nine tenths of a search were fields.

The fast path of every answer that holds a CenterInfoFull. It says what `CenterInfoFull` in
serializers.py says, which documents it, sorts CSV columns and is what tests hold it to.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings

from centers import rates
from centers.rates import Price
from centers.shown import ShownCenter, ShownImage, ShownRate, ShownRoom, ShownService
from roombook.api.serializers import json_number
from roombook.api.urls import absolute

Told = dict[str, Any]


def told(fields: Told) -> Told:
    """The fields that have a value: null, empty text and empty objects are left out."""
    return {
        name: value
        for name, value in fields.items()
        if value or (value is not None and value != "" and value != {})
    }


class Addresses:
    """Makes addresses of pictures absolute, asking the request for its host once."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.root = absolute(request, "/")

    def of(self, url: str) -> str:
        if url.startswith("/"):
            return self.root + url.lstrip("/")
        return absolute(self.request, url)


def center_full(
    center: ShownCenter, addresses: Addresses, services: list[Told] | None = None
) -> Told:
    """A CenterInfoFull; `services`: those of the center, where they are written already."""
    row = center.row
    if services is None:
        services = [service_info(each) for each in center.services_on_offer]
    pictures = [picture(each, addresses) for each in center.images]
    hours = center.hours
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
                    "HasStreet2": bool(row.street2),
                    "CityStatePostalCode": center.city_state_postal_code,
                }
            ),
            "Image": pictures[0] if pictures else None,
            "CenterHours": [{"Value": value, "DisplayValue": display} for value, display in hours],
            "CenterHoursConcatenated": "; ".join(display for _, display in hours),
            "DistanceFromQuery": center.distance_from_query,
            "LowestRate": lowest_rate(center.rooms_on_offer),
            "PromoText": row.promo_text,
            "IsFavorite": row.is_favorite,
            "IsLiveInventory": center.is_live_inventory,
            "IsAfterHoursSupportEnabled": row.is_after_hours_support_enabled,
            "IsNotFavorite": not row.is_favorite,
            "MeetingRooms": [room_info(each, services, addresses) for each in center.meeting_rooms],
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


def room_info(room: ShownRoom, services: list[Told], addresses: Addresses) -> Told:
    """A MeetingRoomInfo; the rooms of a center share its services, which are written once."""
    return told(
        {
            "Id": room.id,
            "Name": room.name,
            "AvailableServices": services,
            "Rate": rate_info(room.rate),
            "LowestRate": entry_text(room.rate),
            "Capacity": room.capacity,
            "IsLiveInventory": room.is_live_inventory,
            "Picture": picture(ShownImage(room.picture, room.picture_thumbnail), addresses),
            "Provider": room.provider,
        }
    )


def service_info(service: ShownService) -> Told:
    return told(
        {
            "Id": service.id,
            "Name": service.name,
            "Description": service.description,
            "Rate": rate_info(service.rate),
            "RateDescription": entry_text(service.rate),
            "BillAtCenter": service.bill_at_center,
            "MinimumBooking": service.minimum_booking,
            "NeedsDuration": service.needs_duration,
            "NeedsQuantity": service.needs_quantity,
        }
    )


def picture(image: ShownImage, addresses: Addresses) -> Told:
    return told(
        {
            "ThumbnailUrl": image.thumbnail and addresses.of(image.thumbnail),
            "FullUrl": image.image and addresses.of(image.image),
        }
    )


def rate_info(rate: ShownRate | None) -> Told | None:
    return None if rate is None else _priced(rate, settings.CURRENCY, settings.LOCALE)[0]


def entry_text(rate: ShownRate | None) -> str:
    return "" if rate is None else _priced(rate, settings.CURRENCY, settings.LOCALE)[1]


def lowest_rate(rooms: Sequence[ShownRoom]) -> str:
    found = (
        _priced(room.rate, settings.CURRENCY, settings.LOCALE)[2] for room in rooms if room.rate
    )
    price = rates.lowest(found)
    return "" if price is None else str(price)


# Of the values of a rate, not of its row: never out of date, and few prices are told often.
# Whoever gets the RateInfo only reads it.
@lru_cache(maxsize=4096)
def _priced(rate: ShownRate, currency: str, locale: str) -> tuple[Told, str, Price | None]:
    """A RateInfo, the entry price in words, and the entry price."""
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
                name: None if amount is None else json_number(amount)
                for name, amount in tiers.items()
            },
            "BillInBlocks": rate.bill_in_blocks,
            "Description": rate.description_for_customers,
        }
    )
    return info, rates.entry_price(rate), rates.entry(rate)
