"""From a reservation to its bill and back: the one place where a price is written down."""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import AllowanceUse, LineItem, LineItemType, Reservation
from reservations.pricing import allowances, promo_codes
from reservations.pricing import quote as pricing
from reservations.pricing.allowances import AvailableAllowance
from reservations.pricing.quote import Quote, ServiceSelection
from roombook import money

if TYPE_CHECKING:
    from accounts.models import User


def quote_list_price(room: MeetingRoom, span: Span, extras: list[ServiceSelection]) -> Quote:
    """What anybody would pay: no promotion, no allowance; tax included."""
    return pricing.calculate_quote(room, span, extras=extras)


def quote_draft(
    user: "User | None", room: MeetingRoom, span: Span, extras: list[ServiceSelection]
) -> Quote:
    """What a draft will cost once it is made for this customer; for nobody, the list price."""
    if user is None:
        return quote_list_price(room, span, extras)
    valid = allowances.get_available(user, room, span)
    return pricing.calculate_quote(room, span, extras=extras, offers=_automatic(valid))


def quote_reservation(reservation: Reservation, offers: list[AvailableAllowance]) -> Quote:
    """What the reservation costs by today's rates, using these allowances."""
    return pricing.calculate_quote(
        reservation.room,
        reservation.span,
        extras=get_selected_services(reservation),
        offers=offers,
        promo=reservation.promo_code,
        adjustments=reservation.price_adjustments.order_by("pk"),
    )


def get_selected_services(reservation: Reservation) -> list[ServiceSelection]:
    chosen = reservation.chosen_services.select_related("service__rate")
    return [
        ServiceSelection(each.service, each.duration_hours, each.quantity)
        for each in chosen.order_by("service__position", "service_id")
    ]


def get_applicable_allowances(reservation: Reservation) -> list[AvailableAllowance]:
    """The allowances that the reservation uses: those chosen, else the automatic ones."""
    valid = allowances.get_available(reservation.user, reservation.room, reservation.span)
    if not reservation.allowances_by_hand:
        return _automatic(valid)
    chosen = set(reservation.allowance_uses.values_list("allowance_id", flat=True))
    return [offer for offer in valid if offer.allowance.pk in chosen]


def _automatic(offers: list[AvailableAllowance]) -> list[AvailableAllowance]:
    return [offer for offer in offers if offer.allowance.is_automatic]


def reprice(reservation: Reservation, *, offers: list[AvailableAllowance] | None = None) -> Quote:
    """Price the reservation anew and write down lines, allowance hours and total.

    The caller is in a transaction and holds the reservation's lock; `reservation.room` comes with
    its center and rate. Raises PromoCodeInvalid where the booking no longer meets the code's terms.
    """
    if offers is None:
        offers = get_applicable_allowances(reservation)
    quote = quote_reservation(reservation, offers)
    if reservation.promo_code is not None:
        promo_codes.require_amounts_allowed(
            reservation.promo_code, base=quote.promotion_base, discount=quote.promotion_discount
        )
    reservation.line_items.all().delete()
    reservation.allowance_uses.all().delete()
    save_lines(reservation, quote)
    reservation.total_cost = quote.total
    reservation.billable_hours = quote.room.billable_hours
    reservation.save(update_fields=["total_cost", "billable_hours"])
    return quote


def save_lines(reservation: Reservation, quote: Quote) -> None:
    """Write down the lines and the allowance hours of a reservation that has none."""
    LineItem.objects.bulk_create(
        LineItem(
            reservation=reservation,
            position=position,
            type=line.type,
            description=line.description[:500],
            amount=line.amount,
            rate=line.rate[:100],
            total=line.total,
            service_id=line.service_id,
            allowance_id=line.allowance_id,
        )
        for position, line in enumerate(quote.lines, start=1)
    )
    AllowanceUse.objects.bulk_create(
        AllowanceUse(
            reservation=reservation,
            allowance_id=used.allowance_id,
            hours=used.hours,
            discount=used.discount,
        )
        for used in quote.hours_used
        if used.hours or reservation.allowances_by_hand
    )


def append_adjustment(reservation: Reservation, *, amount: Decimal, reason: str) -> Decimal:
    """Write an adjustment into a bill that stays as it was otherwise; tax follows in proportion.

    The caller holds the reservation's lock. Nothing goes below zero: what was really taken off is
    answered.
    """
    lines = list(reservation.line_items.order_by("position"))
    taxes = [line for line in lines if line.type == LineItemType.TAX]
    untaxed = sum((line.total for line in lines if line.type != LineItemType.TAX), money.ZERO)
    off = max(amount, -untaxed)
    for tax in taxes:
        left = tax.total * (untaxed + off) / untaxed if untaxed else money.ZERO
        tax.total = money.round_amount(left)
        tax.amount = money.format_amount(tax.total)
    last = lines[-1].position if lines else 0
    for position, tax in enumerate(taxes, start=last + 2):
        tax.position = position
    LineItem.objects.bulk_update(taxes, ["position", "total", "amount"])
    adjustment = LineItem.objects.create(
        reservation=reservation,
        position=last + 1,
        type=LineItemType.ADJUSTMENT,
        description=pricing.describe_adjustment(reason)[:500],
        amount=money.format_amount(off),
        total=off,
    )
    reservation.total_cost = (
        untaxed + adjustment.total + sum((tax.total for tax in taxes), money.ZERO)
    )
    reservation.save(update_fields=["total_cost"])
    return off


def consume_benefits(
    reservation: Reservation, *, keeps_promo: bool = False, now: dt.datetime
) -> None:
    """Use up the promo code and the included hours that the bill counts on, or raise."""
    if reservation.promo_code_id is not None:
        lines = reservation.line_items.filter(type=LineItemType.PROMOTION)
        discount = -sum((line.total for line in lines), money.ZERO)
        # A code that takes nothing off, as the hours cover all, is not used up for nothing.
        if discount:
            promo_codes.redeem(reservation, discount=discount, is_kept=keeps_promo, now=now)
    allowances.consume(reservation, now=now)


def return_benefits(reservation: Reservation, *, now: dt.datetime) -> None:
    """Give the promo use and the hours back; twice is harmless."""
    promo_codes.return_redemption(reservation, now=now)
    allowances.return_hours(reservation, now=now)
