"""The rows that make up a reservation, on its page."""

from typing import Any

from django.http import HttpRequest

from reservations.forms import PriceAdjustmentForm
from reservations.models import (
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    PriceAdjustment,
    PromoRedemption,
    Reservation,
)
from roombook.admin import ReadOnly, TabularInline


class ReadOnlyInline(ReadOnly, TabularInline):
    extra = 0
    can_delete = False
    classes = ("no-names",)


class LineItemInline(ReadOnlyInline):
    model = LineItem
    fields = ("description", "rate", "amount", "total")
    ordering = ("position",)


class AttendeeInline(ReadOnlyInline):
    model = Attendee
    fields = ("name", "email_address", "company_name", "is_creator")


class ChosenServiceInline(ReadOnlyInline):
    model = ChosenService
    fields = ("service", "duration_hours", "quantity")


class AllowanceUseInline(ReadOnlyInline):
    model = AllowanceUse
    fields = ("allowance", "hours", "discount")


class PromoRedemptionInline(ReadOnlyInline):
    model = PromoRedemption
    fields = ("promo_code", "amount", "taken_at", "given_back_at")


class PriceAdjustmentInline(TabularInline):
    """Only added, and only to a draft: the bill is written anew with it."""

    model = PriceAdjustment
    form = PriceAdjustmentForm
    fields = ("amount", "reason", "by", "at")
    readonly_fields = ("by", "at")
    classes = ("no-names",)
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Reservation | None = None) -> bool:
        return obj is not None and obj.is_new and super().has_add_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
