"""What a booking costs, line by line (B12): pure, on rows that may be unsaved.

The order is the rule: room and set-up fee, services, then allowances on the room's line, then the
promotion on what is left, then what staff adjusted, then tax on all the rest.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from centers import rates
from centers.span import Span
from reservations.models import LineItemType, PriceAdjustment, PromoCode
from roombook import money
from roombook.errors import RateNotConfigured

if TYPE_CHECKING:
    from centers.models import MeetingRoom, Service
    from reservations.pricing.allowances import AvailableAllowance


@dataclass(frozen=True, slots=True)
class ServiceSelection:
    """A service that is wanted, with what the customer said of it."""

    service: "Service"
    duration_hours: Decimal | None = None
    quantity: int | None = None


@dataclass(frozen=True, slots=True)
class QuoteLine:
    """A line of the bill; `amount` and `rate` are words, `total` is what it adds to the sum."""

    type: LineItemType
    description: str
    total: Decimal
    amount: str
    rate: str = ""
    service_id: int | None = None
    allowance_id: int | None = None


@dataclass(frozen=True, slots=True)
class AppliedAllowance:
    """Whole hours of an allowance that a booking uses, and what they take off."""

    allowance_id: int
    hours: int
    discount: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """A priced booking. `total` is the sum of the lines, and never below zero."""

    lines: tuple[QuoteLine, ...]
    room: rates.RoomPrice
    hours_used: tuple[AppliedAllowance, ...]
    promotion_base: Decimal
    promotion_discount: Decimal

    @property
    def total(self) -> Decimal:
        return _sum(self.lines)


def calculate_quote(
    room: "MeetingRoom",
    span: Span,
    *,
    extras: Sequence[ServiceSelection] = (),
    offers: Sequence["AvailableAllowance"] = (),
    promo: PromoCode | None = None,
    adjustments: Iterable[PriceAdjustment] = (),
) -> Quote:
    """Price a room with its services for a span.

    `offers`: allowances to use, in the order of their use; those that add nothing are told with
    no hours. Raises RateNotConfigured where the room or a service has no price.
    """
    center = room.center
    priced = rates.price_room(room.rate, span, center.zone)
    lines = [*_room_lines(room, priced)]
    for extra in extras:
        lines += _service_lines(extra, span)
    used = apply_allowances(priced, offers)
    lines += _allowance_lines(used, offers)
    base = _sum(lines)
    discount = get_promo_discount(promo, base) if promo else money.ZERO
    if promo and discount:
        lines.append(_deduction(LineItemType.PROMOTION, _promotion_text(promo), discount))
    for adjustment in adjustments:
        lines.append(_adjustment_line(adjustment, left=_sum(lines)))
    tax = money.round_amount(_sum(lines) * center.tax_rate / 100)
    if tax:
        text = f"Tax, {format_percent(center.tax_rate)}%"
        lines.append(QuoteLine(LineItemType.TAX, text, tax, money.format_amount(tax)))
    priced_booking = Quote(tuple(lines), priced, used, base, discount)
    if priced_booking.total > money.MAX_AMOUNT:
        raise RateNotConfigured("This price is beyond what can be charged. Please ask the center.")
    return priced_booking


def apply_allowances(
    priced: rates.RoomPrice, offers: Iterable["AvailableAllowance"]
) -> tuple[AppliedAllowance, ...]:
    """Spend whole hours of each offer in turn, up to the booking's billable hours rounded down.

    A discount is its share of the room's line by hours. Shares are rounded as a running sum, so
    that they never add up to more than the line.
    """
    uncovered = int(priced.billable_hours) if priced.total else 0
    covered, taken_off, used = 0, money.ZERO, []
    for offer in offers:
        hours = min(offer.hours_left, uncovered)
        uncovered -= hours
        covered += hours
        off_so_far = get_allowance_discount(priced.total, covered, priced.billable_hours)
        used.append(AppliedAllowance(offer.allowance.pk, hours, off_so_far - taken_off))
        taken_off = off_so_far
    return tuple(used)


def get_allowance_discount(room_cost: Decimal, hours: int, billable_hours: Decimal) -> Decimal:
    """What some hours of an allowance take off the room's line, whatever tiers made it up."""
    return money.round_amount(room_cost * hours / billable_hours) if hours else money.ZERO


def get_promo_discount(promo: PromoCode, base: Decimal) -> Decimal:
    """What a code takes off a sum: never more than the sum."""
    if promo.percent is not None:
        return money.round_amount(base * promo.percent / 100)
    return min(promo.amount or money.ZERO, base)


def format_percent(rate: Decimal) -> str:
    """A percentage with all of its places and no idle zeros: `8.625`, `10`."""
    return f"{rate:f}".rstrip("0").rstrip(".") if "." in f"{rate:f}" else f"{rate:f}"


def _room_lines(room: "MeetingRoom", priced: rates.RoomPrice) -> Iterator[QuoteLine]:
    text = f"{room.name}, {priced.explanation}"
    yield QuoteLine(
        LineItemType.ROOM, text, priced.total, money.format_amount(priced.total), priced.rate_text
    )
    fee = room.rate.setup_fee if room.rate else None
    if fee:
        yield QuoteLine(
            LineItemType.SETUP_FEE, f"{room.name}, set-up", fee, money.format_amount(fee)
        )


def _service_lines(extra: ServiceSelection, span: Span) -> Iterator[QuoteLine]:
    service = extra.service
    rate_text = rates.format_entry_price(service.rate)
    if service.bill_at_center:
        yield _line_at_center(extra, span, rate_text)
        return
    description, amount = _service_price(extra, span)
    yield QuoteLine(
        LineItemType.SERVICE,
        description,
        amount,
        money.format_amount(amount),
        rate_text,
        service_id=service.pk,
    )
    fee = service.rate.setup_fee if service.rate else None
    if fee:
        text = f"{service.name}, set-up"
        yield QuoteLine(
            LineItemType.SETUP_FEE, text, fee, money.format_amount(fee), service_id=service.pk
        )


def _line_at_center(extra: ServiceSelection, span: Span, rate_text: str) -> QuoteLine:
    service = extra.service
    try:
        description, price = _service_price(extra, span)
    except RateNotConfigured:
        # The center names its price on the spot.
        description, amount = service.name, "At the center"
    else:
        price += (service.rate and service.rate.setup_fee) or money.ZERO
        amount = f"{money.format_amount(price)} at the center"
    return QuoteLine(
        LineItemType.SERVICE, description, money.ZERO, amount, rate_text, service_id=service.pk
    )


def _service_price(extra: ServiceSelection, span: Span) -> tuple[str, Decimal]:
    """A service's description and exact price: its unit price times hours, pieces, or both."""
    service, rate = extra.service, extra.service.rate
    minimum = service.minimum_booking or 0
    unit = None if rate is None else rate.flat_rate if rate.is_flat_rate else rate.hourly
    if rate is None or unit is None:
        raise RateNotConfigured(f"{service.name} has no price yet. Please ask the center.")
    amount, parts, note = unit, [], ""
    if service.needs_duration or not rate.is_flat_rate:
        asked = extra.duration_hours
        if asked is None or not service.needs_duration:
            asked = get_duration_hours(span)
        # Pieces have the floor where there are pieces and no hours to choose.
        in_hours = service.needs_duration or not service.needs_quantity
        billed = max(asked, Decimal(minimum)) if in_hours else asked
        # A flat rate is for the whole time, however long.
        amount *= 1 if rate.is_flat_rate else billed
        parts.append(rates.format_hours(billed))
        if billed != asked:
            note = f" (the least that is billed; {rates.format_hours(asked)} asked for)"
    if service.needs_quantity:
        asked_pieces = extra.quantity or 1
        pieces = asked_pieces if service.needs_duration else max(asked_pieces, minimum)
        amount *= pieces
        parts.append(f"{pieces} pieces" if pieces != 1 else "1 piece")
        if pieces != asked_pieces:
            note = f" (the least that is billed; {asked_pieces} asked for)"
    return ", ".join([service.name, *parts]) + note, money.round_amount(amount)


def get_duration_hours(span: Span) -> Decimal:
    """A booking's own length in hours."""
    return Decimal(span.duration // dt.timedelta(minutes=1)) / 60


def _allowance_lines(
    used: Iterable[AppliedAllowance], offers: Iterable["AvailableAllowance"]
) -> Iterator[QuoteLine]:
    for each, offer in zip(used, offers, strict=True):
        if each.discount:
            text = f"{offer.allowance.description}, {rates.format_hours(Decimal(each.hours))}"
            yield _deduction(
                LineItemType.ALLOWANCE, text, each.discount, allowance_id=each.allowance_id
            )


def _promotion_text(promo: PromoCode) -> str:
    if promo.percent is not None:
        return f"Promo code {promo.code}, {format_percent(promo.percent)}% off"
    return f"Promo code {promo.code}"


def _adjustment_line(adjustment: PriceAdjustment, *, left: Decimal) -> QuoteLine:
    amount = max(adjustment.amount, -left)
    text = describe_adjustment(adjustment.reason)
    return QuoteLine(LineItemType.ADJUSTMENT, text, amount, money.format_amount(amount))


def describe_adjustment(reason: str) -> str:
    return f"Adjustment: {reason}"


def _deduction(
    kind: LineItemType, description: str, amount: Decimal, *, allowance_id: int | None = None
) -> QuoteLine:
    return QuoteLine(
        kind, description, -amount, money.format_amount(-amount), allowance_id=allowance_id
    )


def _sum(lines: Iterable[QuoteLine]) -> Decimal:
    return sum((line.total for line in lines), money.ZERO)
