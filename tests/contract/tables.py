"""The contract's tables, transcribed from the original contract, in its order.

No operation uses them: serializers and documentation are compared with them. A field is its name
and its type, written as the contract writes it: `string`, `int`, `IList<ServiceOption>`. `*Name`
stands for all fields of another type. Indented lines continue the line above.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperationSchema:
    """An operation's name, path and fields; AppVersion, Token, Success and Error not repeated."""

    name: str
    path: str
    request: Mapping[str, str] = field(default_factory=dict)
    response: Mapping[str, str] = field(default_factory=dict)
    needs_token: bool = True


@dataclass(frozen=True)
class ContractSchema:
    """All operations by name, and the fields of all object types."""

    operations: Mapping[str, OperationSchema]
    types: Mapping[str, Mapping[str, str]]


TYPES = """
ResponseError: Summary string, Message string, Details string
UserInfo: Id int, Type UserTypes, FirstName string, LastName string, EmailAddress string,
  CompanyName string, PhoneNumber string, SavedPaymentInfo SavedPaymentInfo, ThumbnailUrl string
SavedPaymentInfo: FirstName string, LastName string, CompanyName string,
  Last4DigitsOfCreditCardNumber string, BillingAddress AddressInfo, ExpirationDate DateTime,
  CardType string, HasCVV bool
AccountPaymentInfo: FirstName string, LastName string, CompanyName string,
  CreditCardNumber string, SecurityCode string, ExpirationDate DateTime,
  BillingAddress AddressInfo
AddressInfo: Street1 string, Street2 string, Street3 string, City string, State string,
  PostalCode string, Country string, Latitude double, Longitude double, TimeZoneId string,
  HasStreet2 bool, CityStatePostalCode string
ReservationInfo: Id int, Start DateTime, End DateTime, Center CenterInfoFull,
  MeetingRoom MeetingRoomInfo, Services IList<ServiceOption>, Attendees IList<AttendeeInfo>,
  TotalCost decimal, LineItems IList<LineItemInfo>, NumberOfAttendees int,
  Allowances IList<AllowanceUsageInfo>, CanApplyAllowances bool,
  UsableAllowances List<AllowanceUsageInfo>, RoomCost decimal, Promotion string,
  Status ReservationStatuses
ServiceOption: ServiceId int, ServiceName string, Selected bool, NeedsDuration bool,
  NeedsQuantity bool, DurationHours decimal, Quantity int
AttendeeInfo: Id int, Name string, EmailAddress string, CompanyName string, IsCreator bool
LineItemInfo: Amount string, Description string, Total decimal, Type LineItemType, Rate string,
  ServiceId int, AllowanceId int
AllowanceUsageInfo: Reservation ReservationInfo, Allowance AllowanceInfo, NumberOfHours int,
  DiscountApplied decimal, InUse bool
AllowanceInfo: Description string, Id int
CenterInfo: Id int, Name string, Address AddressInfo, Image CenterImageInfo,
  CenterHours IList<CenterInfoHours>, CenterHoursConcatenated string, DistanceFromQuery double,
  LowestRate string, PromoText string, IsFavorite bool, IsLiveInventory bool,
  IsAfterHoursSupportEnabled bool, IsNotFavorite bool
CenterInfoFull: *CenterInfo, MeetingRooms IList<MeetingRoomInfo>, Landmarks IList<LandmarkInfo>,
  Images IList<CenterImageInfo>, ParkingInformation string, IsNewLocation bool, IsNewLowPrice bool
CenterImageInfo: ThumbnailUrl string, FullUrl string
CenterInfoHours: Value string, DisplayValue string
MeetingRoomInfo: Id int, Name string, AvailableServices IList<ServiceInfo>, Rate RateInfo,
  LowestRate string, Capacity int, IsLiveInventory bool, Picture CenterImageInfo, Provider string
ServiceInfo: Id int, Name string, Description string, Rate RateInfo, RateDescription string,
  BillAtCenter bool, MinimumBooking int, NeedsDuration bool, NeedsQuantity bool,
  DurationHours decimal, Quantity int
RateInfo: IsFlatRate bool, FlatRate decimal, Hourly decimal, HalfDay decimal, FullDay decimal,
  SetupFee decimal, BillInBlocks bool, Description string
LandmarkInfo: Name string, Description string, Type string
SearchFilterCriteria: CapacityLow int?, CapacityHigh int?, ResourceTypeIds IList<int>,
  ServiceIds IList<int>, NeighborhoodIds IList<int>, OnlyAfterHours bool, OnlyRealtime bool
SearchFilterInfo: RoomTypes IList<ResourceTypeInfo>, Services IList<ResourceTypeInfo>,
  Neighborhoods IList<NeighborhoodInfo>
ResourceTypeInfo: Id int, Name string, IsService bool, Position int, Internal bool
NeighborhoodInfo: Id int, OriginalName string, Name string, City string, State string,
  CustomTitle string, LandingPageContent string, CoworkingLandingPageContent string
"""
OPERATION_LINES = """
Sign in: /api/sign-in without Token
  request: EmailAddress string, Password string
  response: UserInfo UserInfo, Token string
Get reservation: /api/account/reservation
  request: Id int
  response: Reservation ReservationInfo
Update account info: /api/account/update-info
  request: NewFirstName string, NewLastName string, NewCompanyName string, NewPhoneNumber string
  response: UpdatedUserInfo UserInfo
Update payment info: /api/account/update-payment-info
  request: PaymentInfo AccountPaymentInfo
  response: UpdatedUserInfo UserInfo
Remove account thumbnail: /api/account/remove-thumbnail
  request:
  response: UpdatedUserInfo UserInfo
Change password: /api/change-password
  request: CurrentPassword string, NewPassword string, ConfirmNewPassword string
  response:
Search locations: /api/locations/search
  request: Latitude double, Longitude double, RadiusInMiles int, Query string,
    Filters SearchFilterCriteria
  response: Centers IList<CenterInfoFull>, FilterOptions SearchFilterInfo
City centers: /api/city-centers
  request: AreaType AreaTypes, Area string, CityName string, Filters SearchFilterCriteria
  response: Centers IList<CenterInfoFull>, FilterOptions SearchFilterInfo
Check room availability: /api/meeting-rooms/check-availability
  request: CenterId int, RoomId int, StartDate DateTime, EndDate DateTime
  response: IsAvailable bool
Reservation cost: /api/reservations/cost
  request: MeetingRoomId int, StartDate DateTime, EndDate DateTime,
    ServiceOptions IList<ServiceOption>
  response: Total decimal
Update promo code: /api/reservation/update-promo-code
  request: ReservationId int, PromoCode string
  response: UpdatedReservation ReservationInfo
Get allowances: /api/reservations/get-allowances
  request: ReservationId int
  response: Allowances IList<AllowanceUsageInfo>
Checkout: /api/reservations/checkout
  request: ReservationId int, UseSavedPaymentInfo bool, PaymentInfo AccountPaymentInfo,
    SavePaymentInfo bool, TestMode bool, PartnerCode string
  response: ConfirmationMessage string, IsLive bool, Status ReservationStatuses
"""

# The values that the contract names; the service may have others besides.
ENUMERATIONS: dict[str, set[str]] = {
    "UserTypes": {"Account"},
    "ReservationStatuses": {"New"},
    "LineItemType": set(),
    "AreaTypes": {"State"},
}


def parse_fields(text: str, types: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the types of fields by their names."""
    fields: dict[str, str] = {}
    for part in filter(None, text.split(", ")):
        name, _, type_name = part.partition(" ")
        fields |= {name: type_name} if type_name else types[name.removeprefix("*")]
    return fields


def parse_types() -> dict[str, dict[str, str]]:
    types: dict[str, dict[str, str]] = {}
    for line in TYPES.replace("\n  ", " ").strip().splitlines():
        name, _, text = line.partition(": ")
        types[name] = parse_fields(text, types)
    return types


def parse_operations() -> list[OperationSchema]:
    pattern = r"^(.+): (\S+)( without Token)?\n  request: ?(.*)\n  response: ?(.*)$"
    lines = OPERATION_LINES.replace("\n    ", " ")
    return [
        OperationSchema(
            name, path, parse_fields(request, {}), parse_fields(response, {}), not without_token
        )
        for name, path, without_token, request, response in re.findall(pattern, lines, re.M)
    ]


CONTRACT_TYPES = parse_types()
OPERATIONS = parse_operations()
