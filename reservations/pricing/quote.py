"""Calculates the price of a booking, line by line (B12). Pure functions: the rows can be unsaved.

The price is calculated in the order of the lines: room and set-up fee, services, allowances on the
room's line, the promotion on the remaining sum, extras and adjustments by staff, and tax on the sum
of all (or contained in it).
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from centers import rates
from centers.span import Span
from reservations.models import LineItemType, PriceAdjustment, PromoCode
from reservations.pricing.taxes import TaxedSum, calculate_tax, format_percent
from roombook import money
from roombook.errors import RateNotConfigured

if TYPE_CHECKING:
    from centers.models import MeetingRoom, Service
    from reservations.pricing.allowances import AvailableAllowance


TOO_EXPENSIVE = "This price is beyond what can be charged. Please ask the center."


@dataclass(frozen=True, slots=True)
class ServiceSelection:
    """A service that the customer selected, with a duration and a quantity if it needs them."""

    service: "Service"
    duration_hours: Decimal | None = None
    quantity: int | None = None


@dataclass(frozen=True, slots=True)
class QuoteLine:
    """A line of the bill. `amount` and `rate` are texts; `total` is the amount in the sum.

    `stated_amount` is shown instead of the total.
    """

    type: LineItemType
    description: str
    total: Decimal
    rate: str = ""
    service_id: int | None = None
    allowance_id: int | None = None
    stated_amount: str = ""
    contained_tax: Decimal = money.ZERO
    tax_label: str = ""

    @property
    def amount(self) -> str:
        return self.stated_amount or money.format_amount(self.total)


@dataclass(frozen=True, slots=True)
class AppliedAllowance:
    """Whole hours of an allowance that a booking uses, and the discount for them."""

    allowance_id: int
    hours: int
    discount: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """A priced booking. `total` is the sum of the lines and never negative."""

    lines: tuple[QuoteLine, ...]
    room: rates.RoomPrice
    applied_allowances: tuple[AppliedAllowance, ...]
    promotion_base: Decimal
    promotion_discount: Decimal

    @property
    def total(self) -> Decimal:
        return _sum(self.lines)


def calculate_quote(
    room: "MeetingRoom",
    span: Span,
    *,
    services: Sequence[ServiceSelection] = (),
    allowances: Sequence["AvailableAllowance"] = (),
    promo_code: PromoCode | None = None,
    adjustments: Iterable[PriceAdjustment] = (),
) -> Quote:
    """Price a room with services for a span.

    `allowances` are used in their order; those that the booking does not need have 0 hours in
    `applied_allowances`. Raises RateNotConfigured if the room or a service has no price.
    """
    center = room.center
    room_price = rates.price_room(room.rate, span, center.zone)
    lines = [*_build_room_lines(room, room_price)]
    for selection in services:
        lines += _build_service_lines(selection, span)
    applied = apply_allowances(room_price, allowances)
    lines += _build_allowance_lines(applied, allowances)
    base = _sum(lines)
    discount = get_promo_discount(promo_code, base) if promo_code else money.ZERO
    if promo_code and discount:
        text = _describe_promotion(promo_code)
        lines.append(QuoteLine(LineItemType.PROMOTION, text, -discount))
    for each in adjustments:
        lines.append(build_adjustment_line(each.amount, each.reason, untaxed=_sum(lines)))
    lines = add_tax(lines, center.tax_rate, is_contained=center.prices_include_tax)
    quote = Quote(tuple(lines), room_price, applied, base, discount)
    if quote.total > money.MAX_AMOUNT:
        raise RateNotConfigured(TOO_EXPENSIVE)
    return quote


def add_tax(
    lines: Iterable[QuoteLine], tax_rate: Decimal, *, is_contained: bool
) -> list[QuoteLine]:
    """Return the lines with one that adds the tax on their sum, or says what tax they contain.

    Each line gets its share of a contained tax as a running sum, so that the shares add up to it.
    """
    shared, so_far = [], calculate_tax(money.ZERO, tax_rate, is_contained=is_contained)
    for line in lines:
        taxed = calculate_tax(so_far.base + line.total, tax_rate, is_contained=is_contained)
        share = taxed.contained - so_far.contained
        shared.append(replace(line, contained_tax=share, tax_label=taxed.label))
        so_far = taxed
    return [*shared, build_tax_line(so_far)] if so_far.tax else shared


def build_tax_line(taxed: TaxedSum) -> QuoteLine:
    """Return the line that adds a tax, or states what the other lines contain of it."""
    return QuoteLine(
        LineItemType.TAX,
        taxed.label,
        taxed.added,
        stated_amount=money.format_amount(taxed.tax),
        tax_label=taxed.label,
    )


def apply_allowances(
    room_price: rates.RoomPrice, allowances: Iterable["AvailableAllowance"]
) -> tuple[AppliedAllowance, ...]:
    """Use whole hours of each allowance in turn, up to the billable hours rounded down.

    A discount is the share of the room's line by hours. The shares are rounded as a running sum, so
    that they never add up to more than the line.
    """
    hours_to_cover = int(room_price.billable_hours) if room_price.total else 0
    covered, discount_so_far, applied = 0, money.ZERO, []
    for each in allowances:
        hours = min(each.hours_left, hours_to_cover)
        hours_to_cover -= hours
        covered += hours
        total = get_allowance_discount(room_price.total, covered, room_price.billable_hours)
        applied.append(AppliedAllowance(each.allowance.pk, hours, total - discount_so_far))
        discount_so_far = total
    return tuple(applied)


def get_allowance_discount(room_cost: Decimal, hours: int, billable_hours: Decimal) -> Decimal:
    """Return the discount on the room's line for hours of an allowance; it ignores the tiers."""
    return money.round_amount(room_cost * hours / billable_hours) if hours else money.ZERO


def get_promo_discount(promo_code: PromoCode, base: Decimal) -> Decimal:
    """Return the discount of a code on a sum. It is never more than the sum."""
    if promo_code.percent is not None:
        return money.round_amount(base * promo_code.percent / 100)
    return min(money.round_amount(promo_code.amount or 0), base)


def _build_room_lines(room: "MeetingRoom", room_price: rates.RoomPrice) -> Iterator[QuoteLine]:
    text = f"{room.name}, {room_price.explanation}"
    yield QuoteLine(LineItemType.ROOM, text, room_price.total, room_price.rate_text)
    if room.rate and room.rate.setup_fee:
        fee = money.round_amount(room.rate.setup_fee)
        yield QuoteLine(LineItemType.SETUP_FEE, f"{room.name}, set-up", fee)


def _build_service_lines(selection: ServiceSelection, span: Span) -> Iterator[QuoteLine]:
    service = selection.service
    rate_text = rates.format_entry_price(service.rate)
    if service.bill_at_center:
        yield _build_line_at_center(selection, span, rate_text)
        return
    text, price = _price_service(selection, span)
    yield QuoteLine(LineItemType.SERVICE, text, price, rate_text, service_id=service.pk)
    if service.rate and service.rate.setup_fee:
        text, fee = f"{service.name}, set-up", money.round_amount(service.rate.setup_fee)
        yield QuoteLine(LineItemType.SETUP_FEE, text, fee, service_id=service.pk)


def _build_line_at_center(selection: ServiceSelection, span: Span, rate_text: str) -> QuoteLine:
    service = selection.service
    try:
        text, price = _price_service(selection, span)
    except RateNotConfigured:
        # The center states the price at the time of the meeting.
        text, amount = service.name, "At the center"
    else:
        price += (service.rate and service.rate.setup_fee) or money.ZERO
        amount = f"{money.format_amount(price)} at the center"
    return QuoteLine(
        LineItemType.SERVICE,
        text,
        money.ZERO,
        rate_text,
        service_id=service.pk,
        stated_amount=amount,
    )


def _price_service(selection: ServiceSelection, span: Span) -> tuple[str, Decimal]:
    """Return the description and the price: the unit price times hours, pieces, or both."""
    service, rate = selection.service, selection.service.rate
    minimum = service.minimum_booking or 0
    unit = None if rate is None else rate.flat_rate if rate.is_flat_rate else rate.hourly
    if rate is None or unit is None:
        raise RateNotConfigured(f"{service.name} has no price yet. Please ask the center.")
    amount, parts, note = unit, [], ""
    if service.needs_duration or not rate.is_flat_rate:
        duration = span.duration
        if service.needs_duration and selection.duration_hours is not None:
            # The booking may have become shorter since the service was selected.
            duration = min(duration, to_timedelta(selection.duration_hours))
        billed = rates.get_billable_hours(duration, in_blocks=rate.bill_in_blocks)
        selected = f"{rates.format_hours(to_hours(duration))} selected"
        if billed != to_hours(duration):
            note = f" (for {selected})"
        # The minimum applies to the quantity if the customer chooses no duration.
        if minimum > billed and (service.needs_duration or not service.needs_quantity):
            billed, note = Decimal(minimum), f" (the minimum; {selected})"
        # A flat rate does not depend on the duration.
        amount *= 1 if rate.is_flat_rate else billed
        parts.append(rates.format_hours(billed))
    if service.needs_quantity:
        pieces = selection.quantity or 1
        if minimum > pieces and not service.needs_duration:
            pieces, note = minimum, f" (the minimum; {pieces} selected)"
        amount *= pieces
        parts.append(f"{pieces} pieces" if pieces != 1 else "1 piece")
    return ", ".join([service.name, *parts]) + note, money.round_amount(amount)


def to_hours(duration: dt.timedelta) -> Decimal:
    return Decimal(duration // dt.timedelta(seconds=1)) / 3600


def to_timedelta(hours: Decimal) -> dt.timedelta:
    return dt.timedelta(seconds=int(hours * 3600))


def _build_allowance_lines(
    applied: Iterable[AppliedAllowance], allowances: Iterable["AvailableAllowance"]
) -> Iterator[QuoteLine]:
    for use, each in zip(applied, allowances, strict=True):
        if use.discount:
            text = f"{each.allowance.description}, {rates.format_hours(Decimal(use.hours))}"
            yield QuoteLine(
                LineItemType.ALLOWANCE, text, -use.discount, allowance_id=use.allowance_id
            )


def _describe_promotion(promo_code: PromoCode) -> str:
    if promo_code.percent is not None:
        return f"Promo code {promo_code.code}, {format_percent(promo_code.percent)}% off"
    return f"Promo code {promo_code.code}"


def build_adjustment_line(amount: Decimal, reason: str, *, untaxed: Decimal) -> QuoteLine:
    """Return an extra, or a reduction of at most what the bill comes to without it."""
    if amount > 0:
        return QuoteLine(LineItemType.EXTRA, reason, amount)
    amount = max(amount, -untaxed)
    return QuoteLine(LineItemType.ADJUSTMENT, f"Adjustment: {reason}", amount)


def _sum(lines: Iterable[QuoteLine]) -> Decimal:
    return sum((line.total for line in lines), money.ZERO)
