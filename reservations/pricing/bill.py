"""Prices reservations and stores their bills: the only module that writes prices."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import AllowanceUse, LineItem, LineItemType, Reservation
from reservations.pricing import allowances, promo_codes
from reservations.pricing.allowances import AvailableAllowance
from reservations.pricing.quote import (
    TOO_EXPENSIVE,
    Quote,
    QuoteLine,
    ServiceSelection,
    add_tax,
    build_adjustment_line,
    calculate_quote,
)
from roombook import money
from roombook.errors import RateNotConfigured

if TYPE_CHECKING:
    import datetime as dt

    from accounts.models import User


# --- Quotes --------------------------------------------------------------------------------------


def quote_draft(
    user: "User | None", room: MeetingRoom, span: Span, services: list[ServiceSelection]
) -> Quote:
    """Calculate the price of a new draft; the list price if there is no customer yet."""
    available = _get_automatic(allowances.get_available(user, room, span)) if user else []
    return calculate_quote(room, span, services=services, allowances=available)


def quote_reservation(reservation: Reservation, available: list[AvailableAllowance]) -> Quote:
    """Calculate the price of the reservation by today's rates with these allowances."""
    return calculate_quote(
        reservation.room,
        reservation.span,
        services=get_selected_services(reservation),
        allowances=available,
        promo_code=reservation.promo_code,
        adjustments=reservation.price_adjustments.order_by("pk"),
    )


def get_selected_services(reservation: Reservation) -> list[ServiceSelection]:
    chosen = reservation.chosen_services.select_related("service__rate")
    return [
        ServiceSelection(each.service, each.duration_hours, each.quantity)
        for each in chosen.order_by("service__position", "service_id")
    ]


def get_applicable_allowances(reservation: Reservation) -> list[AvailableAllowance]:
    """Return the allowances that apply: the selected ones, or else the automatic ones."""
    available = allowances.get_available(reservation.user, reservation.room, reservation.span)
    if not reservation.allowances_by_hand:
        return _get_automatic(available)
    selected = set(reservation.allowance_uses.values_list("allowance_id", flat=True))
    return [each for each in available if each.allowance.pk in selected]


def _get_automatic(available: list[AvailableAllowance]) -> list[AvailableAllowance]:
    return [each for each in available if each.allowance.is_automatic]


# --- Bills ---------------------------------------------------------------------------------------


def reprice(
    reservation: Reservation,
    *,
    available: list[AvailableAllowance] | None = None,
    save_also: Sequence[str] = (),
) -> Quote:
    """Price the reservation again, and store its lines, allowance hours and total.

    Checkout refuses to charge another total of a draft until a response has shown it (B15.2,
    `records.mark_prices_as_shown`).
    `save_also` names changed columns that are saved with the total. The caller is in a transaction
    and holds the reservation's lock; the room's center and rate are loaded. Raises PromoCodeInvalid
    if the booking no longer meets the terms of its promo code.
    """
    if available is None:
        available = get_applicable_allowances(reservation)
    quote = quote_reservation(reservation, available)
    if reservation.promo_code is not None:
        promo_codes.require_amounts_allowed(
            reservation.promo_code, base=quote.promotion_base, discount=quote.promotion_discount
        )
    reservation.line_items.all().delete()
    reservation.allowance_uses.all().delete()
    save_lines(reservation, quote)
    is_changed = reservation.total_cost != quote.total
    if is_changed and reservation.is_new and reservation.shown_total is None:
        reservation.shown_total = reservation.total_cost
    reservation.total_cost = quote.total
    reservation.billable_hours = quote.room.billable_hours
    reservation.save(update_fields=["total_cost", "billable_hours", "shown_total", *save_also])
    return quote


def save_lines(reservation: Reservation, quote: Quote) -> None:
    """Store the lines and the allowance hours of a reservation that has none yet."""
    LineItem.objects.bulk_create(
        LineItem(
            reservation=reservation,
            position=position,
            type=line.type,
            description=line.description[:500],
            amount=line.amount,
            rate=line.rate[:100],
            total=line.total,
            contained_tax=line.contained_tax,
            service_id=line.service_id,
            allowance_id=line.allowance_id,
        )
        for position, line in enumerate(quote.lines, start=1)
    )
    # A list, because Django returns an empty one before it prepares anything.
    AllowanceUse.objects.bulk_create(
        [
            AllowanceUse(
                reservation=reservation,
                allowance_id=applied.allowance_id,
                hours=applied.hours,
                discount=applied.discount,
            )
            for applied in quote.applied_allowances
            if applied.hours or reservation.allowances_by_hand
        ]
    )


def append_adjustment(reservation: Reservation, *, amount: Decimal, reason: str) -> Decimal:
    """Add an extra or an adjustment to a bill that otherwise stays the same.

    An extra is taxed by the rate of the center; an adjustment changes the tax in proportion.
    Returns the amount that was applied: the bill never goes below zero. The caller holds the
    reservation's lock.
    """
    lines = list(reservation.line_items.order_by("position"))
    taxes = [line for line in lines if line.type == LineItemType.TAX]
    untaxed = sum((line.total for line in lines if line.type != LineItemType.TAX), money.ZERO)
    contained = sum((line.contained_tax for line in lines), money.ZERO)
    added = build_adjustment_line(amount, reason, untaxed=untaxed)
    if added.total > 0:
        added = _add_tax(reservation, taxes, added)
    else:
        part = (untaxed + added.total) / untaxed if untaxed else money.ZERO
        added = replace(added, contained_tax=money.round_amount(contained * part) - contained)
        for tax in taxes:
            tax.total = money.round_amount(tax.total * part)
    contained += added.contained_tax
    last = lines[-1].position if lines else 0
    for position, tax in enumerate(taxes, start=last + 2):
        tax.position, tax.amount = position, money.format_amount(tax.total or contained)
        tax.save()
    LineItem.objects.create(
        reservation=reservation,
        position=last + 1,
        type=added.type,
        description=added.description[:500],
        amount=added.amount,
        total=added.total,
        contained_tax=added.contained_tax,
    )
    total = untaxed + added.total + sum((tax.total for tax in taxes), money.ZERO)
    if total > money.MAX_AMOUNT:
        raise RateNotConfigured(TOO_EXPENSIVE)
    reservation.total_cost = total
    reservation.save(update_fields=["total_cost"])
    return added.total


def _add_tax(reservation: Reservation, taxes: list[LineItem], extra: QuoteLine) -> QuoteLine:
    """Add the tax of an extra to the line with the same rate, or as another one."""
    center = reservation.room.center
    extra, *added = add_tax([extra], center.tax_rate, is_contained=center.prices_include_tax)
    for line in added:
        tax = next((each for each in taxes if each.description == line.description), None)
        if tax is None:
            tax = LineItem(reservation=reservation, type=line.type, description=line.description)
            tax.total = money.ZERO
            taxes.append(tax)
        tax.total += line.total
    return extra


# --- Promo uses and included hours ---------------------------------------------------------------


def consume_benefits(
    reservation: Reservation,
    *,
    keeps_promo: bool = False,
    is_by_staff: bool = False,
    now: "dt.datetime",
) -> None:
    """Consume the promo code and the included hours on the bill, or raise.

    `keeps_promo`: the booking had already used its promo code and is only repriced. Then
    `is_by_staff` keeps the code for any room and day.
    """
    if reservation.promo_code_id is not None:
        lines = reservation.line_items.filter(type=LineItemType.PROMOTION)
        discount = -sum((line.total for line in lines), money.ZERO)
        # If the included hours cover everything, the code gives no discount and is not used.
        if discount:
            promo_codes.redeem(
                reservation,
                discount=discount,
                is_kept=keeps_promo,
                is_by_staff=is_by_staff,
                now=now,
            )
    allowances.consume(reservation, now=now)


def return_benefits(
    reservation: Reservation, *, share: Decimal = Decimal(1), now: "dt.datetime"
) -> None:
    """Return this share of the included hours and, if it is all, the promo use.

    A second call changes nothing.
    """
    if share == 1:
        promo_codes.return_redemption(reservation, now=now)
    allowances.return_hours(reservation, share=share, now=now)
