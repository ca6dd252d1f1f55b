"""The operations beyond the contract, by the same conventions (B17), and their types.

As in `tables.py`, they are written down independently of the serializers.
"""

from roombook.api.contract_schema import ContractSchema, OperationSchema
from tests.contract.tables import CONTRACT_TYPES, OPERATIONS

TYPES = {
    **CONTRACT_TYPES,
    "RoomFreeTimesInfo": {"RoomId": "int", "FreeTimes": "IList<FreeTimeInfo>"},
    "FreeTimeInfo": {"Start": "DateTime", "End": "DateTime"},
    "AlternativeInfo": {
        "RoomId": "int",
        "CenterId": "int",
        "Start": "DateTime",
        "End": "DateTime",
        "Total": "decimal",
        "DistanceInMiles": "decimal",
        "Reason": "string",
    },
    "PaymentActionInfo": {
        "Gateway": "string",
        "PublishableKey": "string",
        "ClientSecret": "string",
        "Url": "string",
        "ExpiresAt": "DateTime",
    },
    "ReceiptInfo": {
        "Number": "string",
        "Type": "string",
        "IssuedAt": "DateTime",
        "Total": "decimal",
        "Currency": "string",
        "Url": "string",
        "ExpiresAt": "DateTime",
    },
    "PaymentSetupInfo": {
        "Id": "string",
        "Gateway": "string",
        "PublishableKey": "string",
        "ClientSecret": "string",
        "CustomerId": "string",
        "Url": "string",
        "ExpiresAt": "DateTime",
    },
    "ReservationChangeInfo": {
        "EventId": "string",
        "Type": "string",
        "Timestamp": "DateTime",
        "ReservationId": "int",
        "CenterId": "int",
        "FormerCenterId": "int",
        "RoomId": "int",
        "Status": "ReservationStatuses",
        "Start": "DateTime",
        "End": "DateTime",
        "Changed": "IList<string>",
        "Version": "int",
    },
}

CHANGE = {
    "ReservationId": "int",
    "MeetingRoomId": "int",
    "StartDate": "DateTime",
    "EndDate": "DateTime",
    "ServiceOptions": "IList<ServiceOption>",
    "NumberOfAttendees": "int",
    "Attendees": "IList<AttendeeInfo>",
}

EXTENSIONS = [
    OperationSchema(
        "List free times",
        "/api/meeting-rooms/free-times",
        {
            "CenterId": "int",
            "RoomIds": "IList<int>",
            "From": "DateTime",
            "To": "DateTime",
            "DurationMinutes": "int",
        },
        {"Rooms": "IList<RoomFreeTimesInfo>"},
    ),
    OperationSchema(
        "Find alternatives",
        "/api/meeting-rooms/alternatives",
        {
            "RoomId": "int",
            "StartDate": "DateTime",
            "EndDate": "DateTime",
            "ServiceOptions": "IList<ServiceOption>",
            "Limit": "int",
        },
        {"Alternatives": "IList<AlternativeInfo>"},
    ),
    OperationSchema(
        "Get payment action",
        "/api/reservations/payment-action",
        {"ReservationId": "int"},
        {"PaymentAction": "PaymentActionInfo", "Status": "ReservationStatuses"},
    ),
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
        "Get receipts",
        "/api/reservations/receipt",
        {"ReservationId": "int"},
        {"Receipts": "IList<ReceiptInfo>"},
    ),
    OperationSchema(
        "Preview change",
        "/api/reservations/preview-change",
        CHANGE,
        {
            "OldTotal": "decimal",
            "NewTotal": "decimal",
            "Difference": "decimal",
            "LineItems": "IList<LineItemInfo>",
        },
    ),
    OperationSchema(
        "Change reservation",
        "/api/reservations/change",
        {
            **CHANGE,
            "ExpectedTotal": "decimal",
            "UseSavedPaymentInfo": "bool",
            "PaymentInfo": "AccountPaymentInfo",
        },
        {
            "Message": "string",
            "IsApplied": "bool",
            "Charge": "decimal",
            "Refund": "decimal",
            "Reservation": "ReservationInfo",
        },
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
        "Get calendar",
        "/api/account/calendar",
        {"Revoke": "bool"},
        {"CalendarUrl": "string"},
    ),
    OperationSchema(
        "Export account",
        "/api/account/export",
        {},
        {"Export": "object", "Message": "string"},
    ),
    OperationSchema("Delete account", "/api/account/delete", {"Password": "string"}),
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
    OperationSchema(
        "Create payment setup",
        "/api/account/create-payment-setup",
        {"ReturnUrl": "string"},
        {"PaymentSetup": "PaymentSetupInfo"},
    ),
    OperationSchema(
        "Complete payment setup",
        "/api/account/complete-payment-setup",
        {"PaymentSetupId": "string"},
        {"SavedPaymentInfo": "SavedPaymentInfo"},
    ),
    OperationSchema("Sign out", "/api/sign-out"),
    OperationSchema(
        "Create account",
        "/api/account/create",
        {
            "EmailAddress": "string",
            "Password": "string",
            "FirstName": "string",
            "LastName": "string",
            "CompanyName": "string",
            "PhoneNumber": "string",
        },
        needs_token=False,
    ),
    OperationSchema(
        "Confirm email",
        "/api/account/confirm-email",
        {"EmailAddress": "string", "Code": "string"},
        {"UserInfo": "UserInfo", "Token": "string"},
        needs_token=False,
    ),
    OperationSchema(
        "Request password reset",
        "/api/account/request-password-reset",
        {"EmailAddress": "string"},
        needs_token=False,
    ),
    OperationSchema(
        "Reset password",
        "/api/account/reset-password",
        {
            "EmailAddress": "string",
            "Code": "string",
            "NewPassword": "string",
            "ConfirmNewPassword": "string",
        },
        needs_token=False,
    ),
    OperationSchema(
        "Change email",
        "/api/account/change-email",
        {"NewEmailAddress": "string", "Password": "string"},
    ),
    OperationSchema(
        "List reservation changes",
        "/api/integrations/changes",
        {
            "WebhookId": "int",
            "AccessKey": "string",
            "Since": "DateTime",
            "PageSize": "int",
            "Cursor": "string",
        },
        {
            "Changes": "IList<ReservationChangeInfo>",
            "NextCursor": "string",
            "HasMore": "bool",
        },
        needs_token=False,
    ),
]

ALL_OPERATIONS = [*OPERATIONS, *EXTENSIONS]
CONTRACT = ContractSchema({each.name: each for each in ALL_OPERATIONS}, TYPES)
