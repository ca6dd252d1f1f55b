from reservations.models.allowance import Allowance, AllowanceEntry
from reservations.models.partner import Partner
from reservations.models.promo import PromoCode, PromoRedemption
from reservations.models.reservation import (
    DEDUCTION_TYPES,
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    LineItemType,
    PriceAdjustment,
    Reservation,
)

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
