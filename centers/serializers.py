"""The contract's center and room types, and its search filters."""

from typing import Any

from centers.search.filters import SearchFilters
from roombook.api.address import AddressInfo
from roombook.api.fields import (
    BooleanField,
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

    IsFlatRate = BooleanField()
    FlatRate = DecimalField(help_text="A price that is left out is not offered; 0 is free.")
    Hourly = DecimalField()
    HalfDay = DecimalField(help_text="Up to 4 hours.")
    FullDay = DecimalField(help_text="Any length within one day.")
    SetupFee = DecimalField(help_text="Once per booking.")
    BillInBlocks = BooleanField(
        help_text="Billed by the started hour, not by the started quarter of an hour."
    )
    Description = TextField(
        source="description_for_customers", help_text="The whole rate as text for people."
    )


class ServiceInfo(ContractSerializer):
    """An extra that a center offers."""

    Id = IdField()
    Name = TextField()
    Description = TextField()
    Rate = RateInfo()
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

    Id = IdField()
    Name = TextField()
    AvailableServices = ServiceInfo(many=True, shared=True, help_text="What its center offers.")
    Rate = RateInfo()
    LowestRate = TextField(help_text="For people: `$25.00/hour`.")
    Capacity = IntegerField()
    IsLiveInventory = BooleanField(
        help_text="Booked instantly; otherwise the center has to approve."
    )
    Picture = CenterImageInfo()
    Provider = TextField(help_text="Who runs the room.")


class CenterInfoHours(ContractSerializer):
    """A run of weekdays with the same opening hours."""

    Value = TextField(help_text="schema.org's openingHours: `Mo-Fr 08:30-17:00`.")
    DisplayValue = TextField(help_text="For people: `Mon-Fri 8:30 AM - 5:00 PM`.")


class LandmarkInfo(ContractSerializer):
    """Something near a center."""

    Name = TextField()
    Description = TextField()
    Type = TextField()


class CenterInfo(ContractSerializer):
    """A center in short."""

    Id = IdField()
    Name = TextField()
    Address = AddressInfo(source="*")
    Image = CenterImageInfo(help_text="The first of Images.")
    CenterHours = CenterInfoHours(many=True)
    CenterHoursConcatenated = TextField(help_text="The hours for people, on one line.")
    DistanceFromQuery = DoubleField(help_text="Miles, if the search gave a place.")
    LowestRate = TextField(help_text="For people: `$25.00/hour`.")
    PromoText = TextField()
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
    Landmarks = LandmarkInfo(many=True)
    Images = CenterImageInfo(many=True)
    ParkingInformation = TextField()
    IsNewLocation = BooleanField()
    IsNewLowPrice = BooleanField()


class ResourceTypeInfo(ContractSerializer):
    """A type of room or of service."""

    Id = IdField()
    Name = TextField()
    IsService = BooleanField(help_text="A type of service, not of room.")
    Position = IntegerField()
    Internal = BooleanField(help_text="Internal types are never on offer.")


class NeighborhoodInfo(ContractSerializer):
    """A part of a city."""

    Id = IdField()
    OriginalName = TextField(help_text="The name that maps use.")
    Name = TextField()
    City = TextField()
    State = TextField()
    CustomTitle = TextField()
    LandingPageContent = TextField()
    CoworkingLandingPageContent = TextField()


class SearchFilterInfo(ContractSerializer):
    """The filters on offer."""

    RoomTypes = ResourceTypeInfo(many=True, help_text="Ids for ResourceTypeIds.")
    Services = ResourceTypeInfo(many=True, help_text="Ids for ServiceIds.")
    Neighborhoods = NeighborhoodInfo(many=True, help_text="Ids for NeighborhoodIds.")


class CenterSearchResult(ContractSerializer):
    """The response of both searches."""

    Centers = CenterInfoFull(many=True)
    FilterOptions = SearchFilterInfo()


# --- Requests -------------------------------------------------------------------------------------


class SearchFilterCriteria(ContractSerializer):
    """What the customer is looking for. Requests only; an empty list, or false, filters nothing."""

    CapacityLow = IntegerField(min_value=0, contract_type="int?")
    CapacityHigh = IntegerField(min_value=0, contract_type="int?")
    ResourceTypeIds = ListField(IdField(), help_text="Types of room: any of them.")
    ServiceIds = ListField(IdField(), help_text="Types of service: all of them.")
    NeighborhoodIds = ListField(IdField(), help_text="Any of them.")
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
