"""Prices reservations and stores their bills: the only module that writes prices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from centers.models import Center, MeetingRoom
from centers.span import Span
from reservations.models import AllowanceUse, LineItem, LineItemType, Reservation
from reservations.pricing import allowances, promo_codes
from reservations.pricing.allowances import AvailableAllowance
from reservations.pricing.quote import (
    TOO_EXPENSIVE,
    Quote,
    QuoteLine,
    ServiceSelection,
    build_adjustment_line,
    build_tax_line,
    calculate_quote,
)
from reservations.pricing.taxes import TaxedSum, calculate_tax, split_amount, sum_by_tax
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
    _create_lines(reservation, quote.lines, first=1)
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


def _create_lines(reservation: Reservation, lines: Iterable[QuoteLine], *, first: int) -> None:
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
            tax_label=line.tax_label,
            service_id=line.service_id,
            allowance_id=line.allowance_id,
        )
        for position, line in enumerate(lines, start=first)
    )


def append_adjustment(reservation: Reservation, *, amount: Decimal, reason: str) -> Decimal:
    """Add an extra or an adjustment to a bill that otherwise stays the same.

    An extra is taxed as the center taxes now. An adjustment changes each tax of the bill in
    proportion, and has a line for each. Returns the amount that was applied: the bill never goes
    below zero. The caller holds the reservation's lock.
    """
    lines = list(reservation.line_items.order_by("position"))
    sums = sum_by_tax(lines)
    bases = [each.base for each in sums.values()]
    line = build_adjustment_line(amount, reason, untaxed=sum(bases, money.ZERO))
    if line.total > 0:
        changed = [_add_extra(reservation.room.center, sums, line.total)]
    else:
        parts = split_amount(line.total, bases)
        changed = [old.change(part) for old, part in zip(sums.values(), parts, strict=True) if part]
    added = []
    for new in changed:
        old = sums.get(new.label, TaxedSum(new.label))
        total, contained = new.base - old.base, new.contained - old.contained
        added.append(replace(line, total=total, contained_tax=contained, tax_label=new.label))
    sums |= {each.label: each for each in changed}
    if sum((each.gross for each in sums.values()), money.ZERO) > money.MAX_AMOUNT:
        raise RateNotConfigured(TOO_EXPENSIVE)
    # The taxes come last.
    taxed = {each.tax_label for each in lines if each.type == LineItemType.TAX}
    taxes = [build_tax_line(each) for each in sums.values() if each.label in taxed or each.tax]
    reservation.line_items.filter(type=LineItemType.TAX).delete()
    last = lines[-1].position if lines else 0
    _create_lines(reservation, [*added, *taxes], first=last + 1)
    reservation.total_cost = sum((each.gross for each in sums.values()), money.ZERO)
    reservation.save(update_fields=["total_cost"])
    return line.total


def _add_extra(center: Center, sums: Mapping[str, TaxedSum], amount: Decimal) -> TaxedSum:
    """Return the sum of the lines with the present tax of the center, with the extra."""
    rate, is_contained = center.tax_rate, center.prices_include_tax
    label = calculate_tax(amount, rate, is_contained=is_contained).label
    base = sums[label].base if label in sums else money.ZERO
    return calculate_tax(base + amount, rate, is_contained=is_contained)


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


def has_benefits(reservation: Reservation) -> bool:
    """Return whether it uses included hours or a promo code."""
    uses_promo = reservation.promo_redemptions.filter(given_back_at__isnull=True).exists()
    return uses_promo or reservation.allowance_uses.filter(hours__gt=0).exists()


def return_benefits(
    reservation: Reservation, *, share: Decimal = Decimal(1), now: "dt.datetime"
) -> None:
    """Return this share of the included hours and, if it is all, the promo use.

    A second call changes nothing.
    """
    if share == 1:
        promo_codes.return_redemption(reservation, now=now)
    allowances.return_hours(reservation, share=share, now=now)
