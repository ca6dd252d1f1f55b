"""The contract's center and room types, and its search filters."""

from typing import Any

from centers import writers
from centers.records import CenterRecord
from centers.search.filters import SearchFilters
from roombook.api.address import AddressInfo
from roombook.api.serializers import (
    BooleanField,
    ContractSerializer,
    DecimalField,
    DoubleField,
    IdField,
    IntegerField,
    ListField,
    TextField,
    UrlField,
)


def telling_of(serializer: ContractSerializer) -> writers.Telling:
    """What `centers.writers` tells of centers with, made once an answer."""
    context: Any = serializer.context
    if "telling" not in context:
        context["telling"] = writers.Telling(context.get("request"))
    made: writers.Telling = context["telling"]
    return made


# --- Out ------------------------------------------------------------------------------------------


class RateInfo(ContractSerializer):
    """A rate; a tier that is left out is not offered, one of 0 is free."""

    IsFlatRate = BooleanField()
    FlatRate = DecimalField()
    Hourly = DecimalField()
    HalfDay = DecimalField()
    FullDay = DecimalField()
    SetupFee = DecimalField()
    BillInBlocks = BooleanField()
    Description = TextField(source="description_for_customers")


class ServiceInfo(ContractSerializer):
    """An extra that the center offers. DurationHours and Quantity are for clients to fill in."""

    Id = IdField()
    Name = TextField()
    Description = TextField()
    Rate = RateInfo()
    RateDescription = TextField()
    BillAtCenter = BooleanField()
    MinimumBooking = IntegerField()
    NeedsDuration = BooleanField()
    NeedsQuantity = BooleanField()
    DurationHours = DecimalField()
    Quantity = IntegerField()


class CenterImageInfo(ContractSerializer):
    """A picture of a center, small and full."""

    ThumbnailUrl = UrlField(source="thumbnail")
    FullUrl = UrlField(source="image")


class RoomPictureInfo(ContractSerializer):
    """The picture of a room, which is a part of the room's row: a CenterImageInfo."""

    ThumbnailUrl = UrlField(source="picture_thumbnail")
    FullUrl = UrlField(source="picture")


class MeetingRoomInfo(ContractSerializer):
    """A room; its services are those of its center."""

    Id = IdField()
    Name = TextField()
    AvailableServices = ServiceInfo(many=True)
    Rate = RateInfo()
    LowestRate = TextField()
    Capacity = IntegerField()
    IsLiveInventory = BooleanField()
    Picture = RoomPictureInfo(source="*")
    Provider = TextField()


class CenterInfoHours(ContractSerializer):
    """A run of days with equal hours: schema.org's way, and for people."""

    Value = TextField()
    DisplayValue = TextField()


class LandmarkInfo(ContractSerializer):
    """Something near a center."""

    Name = TextField()
    Description = TextField()
    Type = TextField()


class CenterInfo(ContractSerializer):
    """A center in short. Wants rows of `Center.objects.with_details().for_user(user)`."""

    Id = IdField()
    Name = TextField()
    Address = AddressInfo(source="*")
    Image = CenterImageInfo()
    CenterHours = CenterInfoHours(many=True)
    CenterHoursConcatenated = TextField()
    DistanceFromQuery = DoubleField()
    LowestRate = TextField()
    PromoText = TextField()
    IsFavorite = BooleanField()
    IsLiveInventory = BooleanField()
    IsAfterHoursSupportEnabled = BooleanField()
    IsNotFavorite = BooleanField()


class CenterInfoFull(CenterInfo):
    """A center with its rooms; a ShownCenter is written by centers.writers instead."""

    MeetingRooms = MeetingRoomInfo(many=True)
    Landmarks = LandmarkInfo(many=True)
    Images = CenterImageInfo(many=True)
    ParkingInformation = TextField()
    IsNewLocation = BooleanField()
    IsNewLowPrice = BooleanField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        if isinstance(instance, CenterRecord):
            return writers.center_full(instance, telling_of(self))
        return super().to_representation(instance)


class ResourceTypeInfo(ContractSerializer):
    """A kind of room or of service."""

    Id = IdField()
    Name = TextField()
    IsService = BooleanField()
    Position = IntegerField()
    Internal = BooleanField()


class NeighborhoodInfo(ContractSerializer):
    """A part of a city."""

    Id = IdField()
    OriginalName = TextField()
    Name = TextField()
    City = TextField()
    State = TextField()
    CustomTitle = TextField()
    LandingPageContent = TextField()
    CoworkingLandingPageContent = TextField()


class SearchFilterInfo(ContractSerializer):
    """The filters on offer."""

    RoomTypes = ResourceTypeInfo(many=True)
    Services = ResourceTypeInfo(many=True)
    Neighborhoods = NeighborhoodInfo(many=True)


class CenterSearchResult(ContractSerializer):
    """What both searches answer."""

    Centers = CenterInfoFull(many=True)
    FilterOptions = SearchFilterInfo()


# --- In -------------------------------------------------------------------------------------------


class SearchFilterCriteria(ContractSerializer):
    """What a customer wants; an empty list, or false, is no filter."""

    CapacityLow = IntegerField(min_value=0)
    CapacityHigh = IntegerField(min_value=0)
    ResourceTypeIds = ListField(IdField())
    ServiceIds = ListField(IdField())
    NeighborhoodIds = ListField(IdField())
    OnlyAfterHours = BooleanField()
    OnlyRealtime = BooleanField()


def build_filters(criteria: dict[str, Any]) -> SearchFilters:
    """The filters, read one by one: what else a client sends reaches no query."""
    return SearchFilters(
        capacity_low=criteria.get("capacity_low"),
        capacity_high=criteria.get("capacity_high"),
        resource_type_ids=frozenset(criteria.get("resource_type_ids", ())),
        service_ids=frozenset(criteria.get("service_ids", ())),
        neighborhood_ids=frozenset(criteria.get("neighborhood_ids", ())),
        only_after_hours=criteria.get("only_after_hours", False),
        only_realtime=criteria.get("only_realtime", False),
    )
