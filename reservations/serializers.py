"""The contract's reservation types."""

from typing import Any

from centers.serializers import CenterInfoFull, MeetingRoomInfo
from reservations.models import LineItemType
from reservations.models.booking_fields import BOOKING_FIELDS, SERVICES, BookingField, FieldKind
from reservations.models.status import Status
from reservations.pricing.services import MAX_DURATION_HOURS, MAX_QUANTITY
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    IdField,
    IntegerField,
    ListField,
    TextField,
)
from roombook.api.operations import EXAMPLE_DAY
from roombook.api.serializers import AnyField, ContractSerializer

# Requests that succeed with the demo data; roombook/api/views.py moves the day into the future.
EXAMPLE_SPAN = {"StartDate": f"{EXAMPLE_DAY}T09:00:00", "EndDate": f"{EXAMPLE_DAY}T14:00:00"}
EXAMPLE_BOOKING = {
    "MeetingRoomId": 2,
    **EXAMPLE_SPAN,
    "ServiceOptions": [{"ServiceId": 1, "Quantity": 6}],
}
# The first reservation that a client creates.
EXAMPLE_DRAFT = 13
# The second one, after its Checkout.
EXAMPLE_BOOKED = 14

START_DATE = "The start; without an offset, the center's local time."
END_DATE = "The end, which the booking excludes; at most 31 days after the start."
SERVICE_OPTIONS = SERVICES.create_help


class ServiceOption(ContractSerializer):
    """A service: in requests what the customer selects, in responses all that can be selected."""

    ServiceId = IdField(help_text="Required where the option is selected.")
    ServiceName = TextField(help_text="Responses; ignored in requests.")
    Selected = BooleanField(help_text="In requests: absent is selected.")
    NeedsDuration = BooleanField(help_text="Responses; ignored in requests.")
    NeedsQuantity = BooleanField(help_text="Responses; ignored in requests.")
    DurationHours = DecimalField(
        min_value=0,
        max_value=MAX_DURATION_HOURS,
        help_text="Where the service needs hours: above 0, at most the length of the booking"
        " (which is what applies if absent), two places; else validated, but not used.",
    )
    # 0 is what many clients send for services that need no quantity.
    Quantity = IntegerField(
        min_value=0,
        max_value=MAX_QUANTITY,
        help_text=f"1 to {MAX_QUANTITY} where the service needs a quantity; else validated, but not"
        " used.",
    )


class BookingInput(ContractSerializer):
    """A room, a time span and services."""

    MeetingRoomId = IdField(required=True, help_text="The room.")
    StartDate = CenterDateTimeField(required=True, help_text=START_DATE)
    EndDate = CenterDateTimeField(required=True, help_text=END_DATE)
    ServiceOptions = ServiceOption(many=True, help_text=SERVICE_OPTIONS)


class OwnReservationInput(ContractSerializer):
    """One of the account's reservations."""

    ReservationId = IdField(required=True, help_text="One of the account's reservations.")


class AttendeeInfo(ContractSerializer):
    """A person who attends the meeting."""

    Id = IdField(help_text="Responses; ignored in requests.")
    Name = TextField(help_text="A name or an EmailAddress is required.")
    EmailAddress = TextField(max_length=254, help_text="At most 254 characters.")
    CompanyName = TextField(help_text="Where the person works.")
    IsCreator = BooleanField(
        help_text="Responses: the account that created the reservation; ignored in requests."
    )


class CancellationStepInfo(ContractSerializer):
    """A time during which the same part of the price comes back. Responses only."""

    Until = CenterDateTimeField(
        help_text="The end of the step, which is not part of it, with the center's offset; left out"
        " in the last step."
    )
    RefundPercent = IntegerField(help_text="How much of the price comes back, 0 to 100.")
    Refund = DecimalField(
        help_text="What would come back, for a booked reservation that was charged."
    )


class CancellationTermsInfo(ContractSerializer):
    """What comes back if a reservation is cancelled. Responses only."""

    Name = TextField(help_text="Of the terms; left out for those of the deployment.")
    Text = TextField(help_text="A sentence for each step, for people, in local times.")
    GraceUntil = CenterDateTimeField(
        help_text="Until then all comes back because the reservation was just booked."
    )
    Steps = CancellationStepInfo(many=True, help_text="In order of time, from now on.")


class NewReservationInput(BookingInput):
    """What is booked: a room, a time span, and the fields that customers set (BOOKING_FIELDS)."""

    def get_fields(self) -> dict[str, AnyField]:
        return _add_booking_fields(super().get_fields(), "create_help")


class ChangeInput(OwnReservationInput):
    """What a booking should be. What is absent stays as it is."""

    MeetingRoomId = IdField(help_text="Another room; absent: the same.")
    StartDate = CenterDateTimeField(help_text=f"Absent: the same. {START_DATE}")
    EndDate = CenterDateTimeField(help_text=f"Absent: the same. {END_DATE}")

    def get_fields(self) -> dict[str, AnyField]:
        return _add_booking_fields(super().get_fields(), "change_help")


def _add_booking_fields(fields: dict[str, AnyField], help_name: str) -> dict[str, AnyField]:
    """Add those that customers can set, which have this help text, after the times."""
    result: dict[str, AnyField] = {}
    for name, own in fields.items():
        result.setdefault(name, own)
        if name == "EndDate":
            texts = ((each, getattr(each, help_name)) for each in BOOKING_FIELDS)
            result |= {each.contract_name: build_field(each, text) for each, text in texts if text}
    return result


def build_field(field: BookingField, help_text: str) -> AnyField:
    options: dict[str, Any] = {"help_text": help_text, "source": field.name}
    match field.kind:
        case FieldKind.NUMBER:
            return IntegerField(min_value=1, **options)
        case FieldKind.SERVICES:
            return ServiceOption(many=True, **options)
        case FieldKind.ATTENDEES:
            return AttendeeInfo(many=True, **options)
    return TextField(max_length=field.max_length, **options)


class LineItemInfo(ContractSerializer):
    """A line of the bill."""

    Amount = TextField(help_text="For people: `$175.00`, `-$20.00`.")
    Description = TextField(help_text="What is billed, and how the price is calculated.")
    Total = DecimalField(help_text="What the line adds to TotalCost.")
    Type = ChoiceField(
        LineItemType,
        contract_type="LineItemType",
        help_text="`Room`, `SetupFee`, `Service`, `Allowance`, `Promotion`, `Extra`, `Adjustment`"
        " or `Tax`.",
    )
    Rate = TextField(help_text="For people: `$25.00/hour`.")
    ServiceId = IdField(help_text="On lines of a service.")
    AllowanceId = IdField(help_text="On lines of an allowance.")


class AllowanceInfo(ContractSerializer):
    """Included hours of an account."""

    Description = TextField(help_text="`Monthly plan: meeting rooms`.")
    Id = IdField(help_text="For AllowanceIds.")


class ReservationSummary(ContractSerializer):
    """The ReservationInfo inside an AllowanceUsageInfo, without the fields that contain others."""

    contract_type = "ReservationInfo"

    Id = IdField(help_text="The id of the reservation.")
    Start = CenterDateTimeField(help_text="The center's local time, with its offset.")
    End = CenterDateTimeField(help_text="The center's local time, with its offset.")
    Status = ChoiceField(
        Status, contract_type="ReservationStatuses", help_text="What has become of it."
    )


class AllowanceUsageInfo(ContractSerializer):
    """Included hours that a reservation uses, or could use."""

    Reservation = ReservationSummary(shared=True, help_text="With Id, Start, End and Status only.")
    Allowance = AllowanceInfo(help_text="The included hours.")
    NumberOfHours = IntegerField(
        help_text="Hours used, or that would be used if it were the only allowance."
    )
    DiscountApplied = DecimalField(help_text="The discount for these hours.")
    InUse = BooleanField(help_text="The price of the reservation is based on it.")


class ReservationInfo(ContractSerializer):
    """A reservation with all its details."""

    Id = IdField(help_text="The ReservationId for requests.")
    Start = CenterDateTimeField(help_text="The center's local time, with its offset.")
    End = CenterDateTimeField(help_text="The center's local time, with its offset.")
    Center = CenterInfoFull(shared=True, help_text="With all its rooms.")
    MeetingRoom = MeetingRoomInfo(help_text="The room that is booked.")
    Services = ServiceOption(
        many=True, help_text="All that the center offers; `Selected` says whether it is booked."
    )
    Attendees = AttendeeInfo(many=True, help_text="In the order in which they were given.")
    TotalCost = DecimalField(help_text="The sum of the line items; what Checkout charges.")
    LineItems = LineItemInfo(many=True, help_text="The bill.")
    NumberOfAttendees = IntegerField(help_text="How many people attend, with the creator.")
    Allowances = AllowanceUsageInfo(many=True, help_text="Those in use.")
    CanApplyAllowances = BooleanField(
        help_text="The reservation is New, and UsableAllowances is not empty."
    )
    UsableAllowances = AllowanceUsageInfo(
        many=True,
        contract_type="List<AllowanceUsageInfo>",
        help_text="Valid, not in use, and with at least one hour left.",
    )
    RoomCost = DecimalField(help_text="The room's line before discounts.")
    Promotion = TextField(help_text="The promo code.")
    Status = ChoiceField(
        Status, contract_type="ReservationStatuses", help_text="What has become of it."
    )


class FreeTimeInfo(ContractSerializer):
    """A time within which a room can be booked."""

    Start = CenterDateTimeField(help_text="The center's local time, with its offset.")
    End = CenterDateTimeField(help_text="The center's local time, with its offset.")


class RoomFreeTimesInfo(ContractSerializer):
    """The free times of a room, in order."""

    RoomId = IdField(help_text="The room.")
    FreeTimes = FreeTimeInfo(many=True, help_text="As long as possible; empty if there are none.")


class AlternativeInfo(ContractSerializer):
    """A room and a time that can be booked instead."""

    RoomId = IdField(help_text="The room, for MeetingRoomId of Create reservation.")
    CenterId = IdField(help_text="The center of the room.")
    Start = CenterDateTimeField(help_text="The center's local time, with its offset.")
    End = CenterDateTimeField(help_text="The center's local time, with its offset.")
    Total = DecimalField(help_text="As Reservation cost returns it.")
    DistanceInMiles = DecimalField(help_text="From the requested room's center.")
    Reason = TextField(help_text="`OtherRoom`, `OtherTime` or `OtherCenter`.")


class ReservationChangeInfo(ContractSerializer):
    """A change of a reservation, as webhooks report it."""

    EventId = TextField(help_text="The `webhook-id` of the event.")
    Type = TextField(help_text="Such as `reservation.confirmed`.")
    Timestamp = DateTimeField(help_text="When it changed, in UTC.")
    ReservationId = IdField(help_text="The reservation.")
    CenterId = IdField(help_text="The center of its room.")
    FormerCenterId = IdField(
        help_text="The center that it has left, only if it was moved to another."
    )
    RoomId = IdField(help_text="Its room after the change.")
    Status = TextField(
        contract_type="ReservationStatuses", help_text="Its status after the change."
    )
    Start = DateTimeField(help_text="Its start after the change, in UTC.")
    End = DateTimeField(help_text="Its end after the change, in UTC.")
    Changed = ListField(TextField(), help_text="The names of the fields that changed.")
    Version = IntegerField(help_text="A later change of the same reservation has a greater one.")
