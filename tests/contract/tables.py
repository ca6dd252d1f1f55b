"""The contract's tables, transcribed from the original contract, in its order.

No operation uses them: serializers and documentation are compared with them. A type is written
as the contract writes it: `string`, `int`, `IList<ServiceOption>`.
"""

from roombook.api.contract_schema import ContractSchema, OperationSchema

REQUEST_BASE = {"AppVersion": "string"}
SECURE_REQUEST_BASE = {**REQUEST_BASE, "Token": "string"}
RESPONSE_BASE = {"Success": "boolean", "Error": "ResponseError"}

_CENTER_INFO = {
    "Id": "int",
    "Name": "string",
    "Address": "AddressInfo",
    "Image": "CenterImageInfo",
    "CenterHours": "IList<CenterInfoHours>",
    "CenterHoursConcatenated": "string",
    "DistanceFromQuery": "double",
    "LowestRate": "string",
    "PromoText": "string",
    "IsFavorite": "bool",
    "IsLiveInventory": "bool",
    "IsAfterHoursSupportEnabled": "bool",
    "IsNotFavorite": "bool",
}

TYPES: dict[str, dict[str, str]] = {
    # Envelope types
    "ResponseError": {"Summary": "string", "Message": "string", "Details": "string"},
    # Account types
    "UserInfo": {
        "Id": "int",
        "Type": "UserTypes",
        "FirstName": "string",
        "LastName": "string",
        "EmailAddress": "string",
        "CompanyName": "string",
        "PhoneNumber": "string",
        "SavedPaymentInfo": "SavedPaymentInfo",
        "ThumbnailUrl": "string",
    },
    "SavedPaymentInfo": {
        "FirstName": "string",
        "LastName": "string",
        "CompanyName": "string",
        "Last4DigitsOfCreditCardNumber": "string",
        "BillingAddress": "AddressInfo",
        "ExpirationDate": "DateTime",
        "CardType": "string",
        "HasCVV": "bool",
    },
    "AccountPaymentInfo": {
        "FirstName": "string",
        "LastName": "string",
        "CompanyName": "string",
        "CreditCardNumber": "string",
        "SecurityCode": "string",
        "ExpirationDate": "DateTime",
        "BillingAddress": "AddressInfo",
    },
    "AddressInfo": {
        "Street1": "string",
        "Street2": "string",
        "Street3": "string",
        "City": "string",
        "State": "string",
        "PostalCode": "string",
        "Country": "string",
        "Latitude": "double",
        "Longitude": "double",
        "TimeZoneId": "string",
        "HasStreet2": "bool",
        "CityStatePostalCode": "string",
    },
    # Reservation types
    "ReservationInfo": {
        "Id": "int",
        "Start": "DateTime",
        "End": "DateTime",
        "Center": "CenterInfoFull",
        "MeetingRoom": "MeetingRoomInfo",
        "Services": "IList<ServiceOption>",
        "Attendees": "IList<AttendeeInfo>",
        "TotalCost": "decimal",
        "LineItems": "IList<LineItemInfo>",
        "NumberOfAttendees": "int",
        "Allowances": "IList<AllowanceUsageInfo>",
        "CanApplyAllowances": "bool",
        "UsableAllowances": "List<AllowanceUsageInfo>",
        "RoomCost": "decimal",
        "Promotion": "string",
        "Status": "ReservationStatuses",
    },
    "ServiceOption": {
        "ServiceId": "int",
        "ServiceName": "string",
        "Selected": "bool",
        "NeedsDuration": "bool",
        "NeedsQuantity": "bool",
        "DurationHours": "decimal",
        "Quantity": "int",
    },
    "AttendeeInfo": {
        "Id": "int",
        "Name": "string",
        "EmailAddress": "string",
        "CompanyName": "string",
        "IsCreator": "bool",
    },
    "LineItemInfo": {
        "Amount": "string",
        "Description": "string",
        "Total": "decimal",
        "Type": "LineItemType",
        "Rate": "string",
        "ServiceId": "int",
        "AllowanceId": "int",
    },
    "AllowanceUsageInfo": {
        "Reservation": "ReservationInfo",
        "Allowance": "AllowanceInfo",
        "NumberOfHours": "int",
        "DiscountApplied": "decimal",
        "InUse": "bool",
    },
    "AllowanceInfo": {"Description": "string", "Id": "int"},
    # Center and room types
    "CenterInfo": _CENTER_INFO,
    "CenterInfoFull": {
        **_CENTER_INFO,
        "MeetingRooms": "IList<MeetingRoomInfo>",
        "Landmarks": "IList<LandmarkInfo>",
        "Images": "IList<CenterImageInfo>",
        "ParkingInformation": "string",
        "IsNewLocation": "bool",
        "IsNewLowPrice": "bool",
    },
    "CenterImageInfo": {"ThumbnailUrl": "string", "FullUrl": "string"},
    "CenterInfoHours": {"Value": "string", "DisplayValue": "string"},
    "MeetingRoomInfo": {
        "Id": "int",
        "Name": "string",
        "AvailableServices": "IList<ServiceInfo>",
        "Rate": "RateInfo",
        "LowestRate": "string",
        "Capacity": "int",
        "IsLiveInventory": "bool",
        "Picture": "CenterImageInfo",
        "Provider": "string",
    },
    "ServiceInfo": {
        "Id": "int",
        "Name": "string",
        "Description": "string",
        "Rate": "RateInfo",
        "RateDescription": "string",
        "BillAtCenter": "bool",
        "MinimumBooking": "int",
        "NeedsDuration": "bool",
        "NeedsQuantity": "bool",
        "DurationHours": "decimal",
        "Quantity": "int",
    },
    "RateInfo": {
        "IsFlatRate": "bool",
        "FlatRate": "decimal",
        "Hourly": "decimal",
        "HalfDay": "decimal",
        "FullDay": "decimal",
        "SetupFee": "decimal",
        "BillInBlocks": "bool",
        "Description": "string",
    },
    "LandmarkInfo": {"Name": "string", "Description": "string", "Type": "string"},
    # Search filter types
    "SearchFilterCriteria": {
        "CapacityLow": "int?",
        "CapacityHigh": "int?",
        "ResourceTypeIds": "IList<int>",
        "ServiceIds": "IList<int>",
        "NeighborhoodIds": "IList<int>",
        "OnlyAfterHours": "bool",
        "OnlyRealtime": "bool",
    },
    "SearchFilterInfo": {
        "RoomTypes": "IList<ResourceTypeInfo>",
        "Services": "IList<ResourceTypeInfo>",
        "Neighborhoods": "IList<NeighborhoodInfo>",
    },
    "ResourceTypeInfo": {
        "Id": "int",
        "Name": "string",
        "IsService": "bool",
        "Position": "int",
        "Internal": "bool",
    },
    "NeighborhoodInfo": {
        "Id": "int",
        "OriginalName": "string",
        "Name": "string",
        "City": "string",
        "State": "string",
        "CustomTitle": "string",
        "LandingPageContent": "string",
        "CoworkingLandingPageContent": "string",
    },
}

# The values that the contract names; the service may have others besides.
ENUMERATIONS: dict[str, set[str]] = {
    "UserTypes": {"Account"},
    "ReservationStatuses": {"New"},
    "LineItemType": set(),
    "AreaTypes": {"State"},
}

OPERATIONS = [
    OperationSchema(
        "Sign in",
        "/api/sign-in",
        {"EmailAddress": "string", "Password": "string"},
        {"UserInfo": "UserInfo", "Token": "string"},
        needs_token=False,
    ),
    OperationSchema(
        "Get reservation",
        "/api/account/reservation",
        {"Id": "int"},
        {"Reservation": "ReservationInfo"},
    ),
    OperationSchema(
        "Update account info",
        "/api/account/update-info",
        {
            "NewFirstName": "string",
            "NewLastName": "string",
            "NewCompanyName": "string",
            "NewPhoneNumber": "string",
        },
        {"UpdatedUserInfo": "UserInfo"},
    ),
    OperationSchema(
        "Update payment info",
        "/api/account/update-payment-info",
        {"PaymentInfo": "AccountPaymentInfo"},
        {"UpdatedUserInfo": "UserInfo"},
    ),
    OperationSchema(
        "Remove account thumbnail",
        "/api/account/remove-thumbnail",
        {},
        {"UpdatedUserInfo": "UserInfo"},
    ),
    OperationSchema(
        "Change password",
        "/api/change-password",
        {"CurrentPassword": "string", "NewPassword": "string", "ConfirmNewPassword": "string"},
    ),
    OperationSchema(
        "Search locations",
        "/api/locations/search",
        {
            "Latitude": "double",
            "Longitude": "double",
            "RadiusInMiles": "int",
            "Query": "string",
            "Filters": "SearchFilterCriteria",
        },
        {"Centers": "IList<CenterInfoFull>", "FilterOptions": "SearchFilterInfo"},
    ),
    OperationSchema(
        "City centers",
        "/api/city-centers",
        {
            "AreaType": "AreaTypes",
            "Area": "string",
            "CityName": "string",
            "Filters": "SearchFilterCriteria",
        },
        {"Centers": "IList<CenterInfoFull>", "FilterOptions": "SearchFilterInfo"},
    ),
    OperationSchema(
        "Check room availability",
        "/api/meeting-rooms/check-availability",
        {"CenterId": "int", "RoomId": "int", "StartDate": "DateTime", "EndDate": "DateTime"},
        {"IsAvailable": "bool"},
    ),
    OperationSchema(
        "Reservation cost",
        "/api/reservations/cost",
        {
            "MeetingRoomId": "int",
            "StartDate": "DateTime",
            "EndDate": "DateTime",
            "ServiceOptions": "IList<ServiceOption>",
        },
        {"Total": "decimal"},
    ),
    OperationSchema(
        "Update promo code",
        "/api/reservation/update-promo-code",
        {"ReservationId": "int", "PromoCode": "string"},
        {"UpdatedReservation": "ReservationInfo"},
    ),
    OperationSchema(
        "Get allowances",
        "/api/reservations/get-allowances",
        {"ReservationId": "int"},
        {"Allowances": "IList<AllowanceUsageInfo>"},
    ),
    OperationSchema(
        "Checkout",
        "/api/reservations/checkout",
        {
            "ReservationId": "int",
            "UseSavedPaymentInfo": "bool",
            "PaymentInfo": "AccountPaymentInfo",
            "SavePaymentInfo": "bool",
            "TestMode": "bool",
            "PartnerCode": "string",
        },
        {"ConfirmationMessage": "string", "IsLive": "bool", "Status": "ReservationStatuses"},
    ),
]

# Operations beyond the contract, by the same conventions (B17).
EXTENSIONS = [
    OperationSchema(
        "Create reservation",
        "/api/reservations/create",
        {
            "MeetingRoomId": "int",
            "StartDate": "DateTime",
            "EndDate": "DateTime",
            "ServiceOptions": "IList<ServiceOption>",
            "NumberOfAttendees": "int",
            "Attendees": "IList<AttendeeInfo>",
        },
        {"Reservation": "ReservationInfo"},
    ),
    OperationSchema(
        "Cancel reservation",
        "/api/reservations/cancel",
        {"ReservationId": "int", "TestMode": "bool"},
        {"Message": "string", "Refund": "decimal", "Reservation": "ReservationInfo"},
    ),
    OperationSchema(
        "Update allowances",
        "/api/reservations/update-allowances",
        {"ReservationId": "int", "AllowanceIds": "IList<int>"},
        {"UpdatedReservation": "ReservationInfo"},
    ),
    OperationSchema(
        "List reservations",
        "/api/account/reservations",
        {
            "From": "DateTime",
            "To": "DateTime",
            "Statuses": "IList<string>",
            "PageSize": "int",
            "Cursor": "string",
        },
        {"Reservations": "IList<ReservationInfo>", "NextCursor": "string"},
    ),
    OperationSchema(
        "Update favorite",
        "/api/account/update-favorite",
        {"CenterId": "int", "IsFavorite": "bool"},
        {"UpdatedCenter": "CenterInfo"},
    ),
    OperationSchema(
        "Remove payment info",
        "/api/account/remove-payment-info",
        {},
        {"UpdatedUserInfo": "UserInfo"},
    ),
    OperationSchema("Sign out", "/api/sign-out"),
]

ALL_OPERATIONS = [*OPERATIONS, *EXTENSIONS]
CONTRACT = ContractSchema({each.name: each for each in ALL_OPERATIONS}, TYPES)
