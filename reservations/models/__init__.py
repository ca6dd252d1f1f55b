from reservations.models.allowance import Allowance, AllowanceEntry
from reservations.models.attendees_and_services import Attendee, ChosenService
from reservations.models.bill import (
    DEDUCTION_TYPES,
    AllowanceUse,
    LineItem,
    LineItemType,
    PriceAdjustment,
    RefundOverride,
)
from reservations.models.changes import BookingChange, ChangeState
from reservations.models.codes import Partner, PromoCode, PromoRedemption
from reservations.models.note import Note
from reservations.models.receipt import (
    Receipt,
    ReceiptEntry,
    ReceiptSeries,
    ReceiptType,
    Seller,
)
from reservations.models.reservation import Reservation
from reservations.models.webhooks import WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "DEDUCTION_TYPES",
    "Allowance",
    "AllowanceEntry",
    "AllowanceUse",
    "Attendee",
    "BookingChange",
    "ChangeState",
    "ChosenService",
    "LineItem",
    "LineItemType",
    "Note",
    "Partner",
    "PriceAdjustment",
    "PromoCode",
    "PromoRedemption",
    "Receipt",
    "ReceiptEntry",
    "ReceiptSeries",
    "ReceiptType",
    "RefundOverride",
    "Reservation",
    "Seller",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
]
