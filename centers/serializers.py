"""The contract's center and room types, and its search filters."""

from typing import Any

from centers.search import SearchFilters
from roombook.api.address import AddressInfo
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    DecimalField,
    DoubleField,
    IdField,
    IntegerField,
    ListField,
    TextField,
    UrlField,
)
from roombook.api.serializers import ContractSerializer

# --- Responses ------------------------------------------------------------------------------------


class RateInfo(ContractSerializer):
    """What a room or a service costs."""

    # Few different rates occur in many responses.
    is_cached = True

    IsFlatRate = BooleanField(help_text="FlatRate is the price, whatever the duration.")
    FlatRate = DecimalField(help_text="A price that is left out is not offered; 0 is free.")
    Hourly = DecimalField(help_text="The price of an hour.")
    HalfDay = DecimalField(help_text="Up to 4 hours.")
    FullDay = DecimalField(help_text="However long, within one day.")
    SetupFee = DecimalField(help_text="Once per booking.")
    BillInBlocks = BooleanField(
        help_text="Billed by the started hour, not by the started quarter of an hour."
    )
    Description = TextField(
        source="description_for_customers", help_text="The whole rate as text for people."
    )


class PriceInfo(ContractSerializer):
    """A part of a local day, and the prices that hold in it."""

    Name = TextField(help_text="Of the special price list; left out for the standard prices.")
    Start = CenterDateTimeField(help_text="The center's local time, with its offset.")
    End = CenterDateTimeField(help_text="The center's local time, with its offset.")
    Hourly = DecimalField(help_text="A price that is left out is not offered; 0 is free.")
    HalfDay = DecimalField(help_text="Up to 4 hours.")
    FullDay = DecimalField(help_text="However long, within one day.")
    FlatRate = DecimalField(help_text="The price of a booking, whatever its duration.")


class DayPricesInfo(ContractSerializer):
    """The prices of a local day."""

    Date = TextField(help_text="Local at the center: `2027-03-06`.")
    Prices = PriceInfo(
        many=True,
        help_text="In order, from midnight to midnight, whether the center is open or not.",
    )


class ServiceInfo(ContractSerializer):
    """An extra that a center offers."""

    Id = IdField(help_text="The ServiceId for requests.")
    Name = TextField(help_text="`Coffee and tea`.")
    Description = TextField(help_text="What the customer gets.")
    Rate = RateInfo(help_text="What it costs.")
    RateDescription = TextField(help_text="For people: `$25.00/hour`.")
    BillAtCenter = BooleanField(help_text="Paid at the center, not with the booking.")
    MinimumBooking = IntegerField(help_text="The smallest number of hours or pieces billed.")
    NeedsDuration = BooleanField(help_text="Priced by the requested hours (DurationHours).")
    NeedsQuantity = BooleanField(help_text="Priced per piece (Quantity).")
    DurationHours = DecimalField(help_text="For the client to fill in; never in responses.")
    Quantity = IntegerField(help_text="For the client to fill in; never in responses.")


class CenterImageInfo(ContractSerializer):
    """A picture, small and full."""

    ThumbnailUrl = UrlField(source="thumbnail", help_text="Absolute.")
    FullUrl = UrlField(source="image", help_text="Absolute.")


class MeetingRoomInfo(ContractSerializer):
    """A room."""

    Id = IdField(help_text="The RoomId or MeetingRoomId for requests.")
    Name = TextField(help_text="`Aspen`.")
    AvailableServices = ServiceInfo(many=True, shared=True, help_text="What its center offers.")
    Rate = RateInfo(help_text="What it costs.")
    LowestRate = TextField(help_text="For people: `$25.00/hour`.")
    Capacity = IntegerField(help_text="How many people it holds.")
    IsLiveInventory = BooleanField(
        help_text="Booked instantly; otherwise the center has to approve."
    )
    Picture = CenterImageInfo(help_text="A picture of the room.")
    Provider = TextField(help_text="Who runs the room.")


class CenterInfoHours(ContractSerializer):
    """A run of weekdays with the same opening hours."""

    Value = TextField(help_text="schema.org's openingHours: `Mo-Fr 08:30-17:00`.")
    DisplayValue = TextField(help_text="For people: `Mon-Fri 8:30 AM - 5:00 PM`.")


class LandmarkInfo(ContractSerializer):
    """Something near a center."""

    Name = TextField(help_text="`Union Station`.")
    Description = TextField(help_text="How to get there, for example.")
    Type = TextField(help_text="`Station`, `Airport` or the like.")


class CenterInfo(ContractSerializer):
    """A center in short."""

    Id = IdField(help_text="The CenterId for requests.")
    Name = TextField(help_text="`Union Station`.")
    Address = AddressInfo(source="*", help_text="With position and time zone.")
    Image = CenterImageInfo(help_text="The first of Images.")
    CenterHours = CenterInfoHours(many=True, help_text="Opening hours, without closed days.")
    CenterHoursConcatenated = TextField(help_text="The hours for people, on one line.")
    DistanceFromQuery = DoubleField(help_text="Miles, if the search gave a place.")
    LowestRate = TextField(help_text="For people: `$25.00/hour`.")
    PromoText = TextField(help_text="Advertises the center: `First hour free`.")
    IsFavorite = BooleanField(help_text="Of the account that sends the request.")
    IsLiveInventory = BooleanField(help_text="At least one room is booked instantly.")
    IsAfterHoursSupportEnabled = BooleanField(
        help_text="Rooms can be booked outside opening hours."
    )
    IsNotFavorite = BooleanField(help_text="The opposite of IsFavorite.")


class CenterInfoFull(CenterInfo):
    """A center with its rooms."""

    MeetingRooms = MeetingRoomInfo(
        many=True, help_text="In a search: the rooms that match the room filters."
    )
    Landmarks = LandmarkInfo(many=True, help_text="What is near.")
    Images = CenterImageInfo(many=True, help_text="Pictures of the center.")
    ParkingInformation = TextField(help_text="Where to park.")
    IsNewLocation = BooleanField(help_text="The center is new.")
    IsNewLowPrice = BooleanField(help_text="Its prices have become lower.")


class ResourceTypeInfo(ContractSerializer):
    """A type of room or of service."""

    Id = IdField(help_text="For ResourceTypeIds, of a service for ServiceIds.")
    Name = TextField(help_text="`Meeting room`, `Catering`.")
    IsService = BooleanField(help_text="A type of service, not of room.")
    Position = IntegerField(help_text="The order in which types are shown.")
    Internal = BooleanField(help_text="Internal types are never on offer.")


class NeighborhoodInfo(ContractSerializer):
    """A part of a city."""

    Id = IdField(help_text="For NeighborhoodIds.")
    OriginalName = TextField(help_text="The name that maps use.")
    Name = TextField(help_text="The name to show.")
    City = TextField(help_text="`Denver`.")
    State = TextField(help_text="`CO`.")
    CustomTitle = TextField(help_text="The title of a page about it.")
    LandingPageContent = TextField(help_text="The text of a page about it.")
    CoworkingLandingPageContent = TextField(help_text="The same, about coworking.")


class SearchFilterInfo(ContractSerializer):
    """The filters on offer."""

    RoomTypes = ResourceTypeInfo(many=True, help_text="Ids for ResourceTypeIds.")
    Services = ResourceTypeInfo(many=True, help_text="Ids for ServiceIds.")
    Neighborhoods = NeighborhoodInfo(many=True, help_text="Ids for NeighborhoodIds.")


class CenterSearchResult(ContractSerializer):
    """The response of both searches."""

    Centers = CenterInfoFull(many=True, help_text="The centers that match, in order.")
    FilterOptions = SearchFilterInfo(help_text="The filters to offer for this place and Query.")


# --- Requests -------------------------------------------------------------------------------------


class SearchFilterCriteria(ContractSerializer):
    """What the customer is looking for. Requests only; an empty list, or false, filters nothing."""

    CapacityLow = IntegerField(
        min_value=0, contract_type="int?", help_text="A room must hold at least as many people."
    )
    CapacityHigh = IntegerField(
        min_value=0, contract_type="int?", help_text="A room must hold at most as many people."
    )
    ResourceTypeIds = ListField(IdField(), help_text="Types of room: any of them.")
    ServiceIds = ListField(IdField(), help_text="Types of service: all of them.")
    NeighborhoodIds = ListField(IdField(), help_text="At least one of them.")
    OnlyAfterHours = BooleanField(
        help_text="Only centers that can be booked outside their opening hours."
    )
    OnlyRealtime = BooleanField(help_text="Only rooms that are booked instantly.")


def build_filters(criteria: dict[str, Any]) -> SearchFilters:
    """Return the filters, each named: nothing else that a client sends reaches a query."""
    return SearchFilters(
        capacity_low=criteria.get("capacity_low"),
        capacity_high=criteria.get("capacity_high"),
        resource_type_ids=frozenset(criteria.get("resource_type_ids", ())),
        service_ids=frozenset(criteria.get("service_ids", ())),
        neighborhood_ids=frozenset(criteria.get("neighborhood_ids", ())),
        only_after_hours=criteria.get("only_after_hours", False),
        only_realtime=criteria.get("only_realtime", False),
    )
