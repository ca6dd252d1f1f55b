from reservations.models.allowance import Allowance, AllowanceEntry
from reservations.models.bill import (
    DEDUCTION_TYPES,
    AllowanceUse,
    LineItem,
    LineItemType,
    PriceAdjustment,
)
from reservations.models.codes import Partner, PromoCode, PromoRedemption
from reservations.models.reservation import Attendee, ChosenService, Reservation

__all__ = [
    "DEDUCTION_TYPES",
    "Allowance",
    "AllowanceEntry",
    "AllowanceUse",
    "Attendee",
    "ChosenService",
    "LineItem",
    "LineItemType",
    "Partner",
    "PriceAdjustment",
    "PromoCode",
    "PromoRedemption",
    "Reservation",
]
