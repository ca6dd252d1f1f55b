"""The contract's reservation types."""

from typing import Any

from centers.serializers import CenterInfoFull, MeetingRoomInfo, telling_of
from reservations import writers
from roombook.api.serializers import (
    BooleanField,
    CenterDateTimeField,
    ContractSerializer,
    DecimalField,
    IdField,
    IntegerField,
    TextField,
)


class ServiceOption(ContractSerializer):
    """An extra: coming in, what the customer wants of it; going out, also what else there is."""

    ServiceId = IdField()
    ServiceName = TextField()
    Selected = BooleanField()
    NeedsDuration = BooleanField()
    NeedsQuantity = BooleanField()
    DurationHours = DecimalField(min_value=0, max_value=31 * 24)
    # 0 is what many clients send where nothing is needed.
    Quantity = IntegerField(min_value=0, max_value=1000)


class AttendeeInfo(ContractSerializer):
    Id = IdField()
    Name = TextField()
    EmailAddress = TextField(max_length=254)
    CompanyName = TextField()
    IsCreator = BooleanField()


class LineItemInfo(ContractSerializer):
    """A line of the bill. Amount and Rate are for people, Total is what adds up."""

    Amount = TextField()
    Description = TextField()
    Total = DecimalField()
    Type = TextField()
    Rate = TextField()
    ServiceId = IdField()
    AllowanceId = IdField()


class AllowanceInfo(ContractSerializer):
    Description = TextField()
    Id = IdField()


class ReservationSummary(ContractSerializer):
    """The ReservationInfo inside an AllowanceUsageInfo: only so much, so that the nesting ends."""

    Id = IdField()
    Start = CenterDateTimeField()
    End = CenterDateTimeField()
    Status = TextField()


class AllowanceUsageInfo(ContractSerializer):
    """An allowance that a booking uses, or could use."""

    Reservation = ReservationSummary()
    Allowance = AllowanceInfo()
    NumberOfHours = IntegerField()
    DiscountApplied = DecimalField()
    InUse = BooleanField()


class ReservationInfo(ContractSerializer):
    """A whole reservation, of a ReservationRecord; reservations.writers writes it."""

    Id = IdField()
    Start = CenterDateTimeField()
    End = CenterDateTimeField()
    Center = CenterInfoFull()
    MeetingRoom = MeetingRoomInfo()
    Services = ServiceOption(many=True)
    Attendees = AttendeeInfo(many=True)
    TotalCost = DecimalField()
    LineItems = LineItemInfo(many=True)
    NumberOfAttendees = IntegerField()
    Allowances = AllowanceUsageInfo(many=True)
    CanApplyAllowances = BooleanField()
    UsableAllowances = AllowanceUsageInfo(many=True)
    RoomCost = DecimalField()
    Promotion = TextField()
    Status = TextField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return writers.reservation_info(instance, telling_of(self))
