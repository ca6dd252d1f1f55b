"""From a reservation to its bill and back: the one place where a price is written down."""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import AllowanceUse, LineItem, LineItemType, Reservation
from reservations.pricing import allowances, promo_codes
from reservations.pricing import quote as pricing
from reservations.pricing.allowances import Offer
from reservations.pricing.quote import Extra, Quote
from roombook import money

if TYPE_CHECKING:
    from accounts.models import User


def list_price(room: MeetingRoom, span: Span, extras: list[Extra]) -> Quote:
    """What anybody would pay: no promotion, no allowance; tax included."""
    return pricing.quote(room, span, extras=extras)


def draft_price(user: "User | None", room: MeetingRoom, span: Span, extras: list[Extra]) -> Quote:
    """What a draft will cost once it is made for this customer; for nobody, the list price."""
    if user is None:
        return list_price(room, span, extras)
    valid = allowances.valid_for(user, room, span)
    return pricing.quote(room, span, extras=extras, offers=_automatic(valid))


def quote_of(reservation: Reservation, offers: list[Offer]) -> Quote:
    """What the reservation costs by today's rates, using these allowances."""
    return pricing.quote(
        reservation.room,
        reservation.span,
        extras=extras_of(reservation),
        offers=offers,
        promo=reservation.promo_code,
        adjustments=reservation.price_adjustments.order_by("pk"),
    )


def extras_of(reservation: Reservation) -> list[Extra]:
    chosen = reservation.chosen_services.select_related("service__rate")
    return [
        Extra(each.service, each.duration_hours, each.quantity)
        for each in chosen.order_by("service__position", "service_id")
    ]


def offers_for(reservation: Reservation) -> list[Offer]:
    """The allowances that the reservation uses: those chosen, else the automatic ones."""
    valid = allowances.valid_for(reservation.user, reservation.room, reservation.span)
    if not reservation.allowances_by_hand:
        return _automatic(valid)
    chosen = set(reservation.allowance_uses.values_list("allowance_id", flat=True))
    return [offer for offer in valid if offer.allowance.pk in chosen]


def _automatic(offers: list[Offer]) -> list[Offer]:
    return [offer for offer in offers if offer.allowance.is_automatic]


def reprice(reservation: Reservation, *, offers: list[Offer] | None = None) -> Quote:
    """Price the reservation anew and write down lines, allowance hours and total.

    The caller is in a transaction and holds the reservation's lock; `reservation.room` comes with
    its center and rate. Raises PromoCodeInvalid where the booking no longer meets the code's terms.
    """
    if offers is None:
        offers = offers_for(reservation)
    quote = quote_of(reservation, offers)
    if reservation.promo_code is not None:
        promo_codes.require_worth(
            reservation.promo_code, base=quote.promotion_base, discount=quote.promotion_discount
        )
    reservation.line_items.all().delete()
    reservation.allowance_uses.all().delete()
    write_lines(reservation, quote)
    reservation.total_cost = quote.total
    reservation.billable_hours = quote.room.billable_hours
    reservation.save(update_fields=["total_cost", "billable_hours"])
    return quote


def write_lines(reservation: Reservation, quote: Quote) -> None:
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
    untaxed = sum((line.total for line in lines if line.type != LineItemType.TAX), money.zero)
    off = max(amount, -untaxed)
    for tax in taxes:
        left = tax.total * (untaxed + off) / untaxed if untaxed else money.zero
        tax.total = money.rounded(left)
        tax.amount = money.display(tax.total)
    last = lines[-1].position if lines else 0
    for position, tax in enumerate(taxes, start=last + 2):
        tax.position = position
    LineItem.objects.bulk_update(taxes, ["position", "total", "amount"])
    adjustment = LineItem.objects.create(
        reservation=reservation,
        position=last + 1,
        type=LineItemType.ADJUSTMENT,
        description=pricing.adjustment_text(reason)[:500],
        amount=money.display(off),
        total=off,
    )
    reservation.total_cost = (
        untaxed + adjustment.total + sum((tax.total for tax in taxes), money.zero)
    )
    reservation.save(update_fields=["total_cost"])
    return off


def take_benefits(reservation: Reservation, *, keeps_promo: bool = False, now: dt.datetime) -> None:
    """Use up the promo code and the included hours that the bill counts on, or raise."""
    if reservation.promo_code_id is not None:
        lines = reservation.line_items.filter(type=LineItemType.PROMOTION)
        discount = -sum((line.total for line in lines), money.zero)
        # A code that takes nothing off, as the hours cover all, is not used up for nothing.
        if discount:
            promo_codes.take(reservation, discount=discount, is_kept=keeps_promo, now=now)
    allowances.take(reservation, now=now)


def give_back_benefits(reservation: Reservation, *, now: dt.datetime) -> None:
    """Give the promo use and the hours back; twice is harmless."""
    promo_codes.give_back(reservation, now=now)
    allowances.give_back(reservation, now=now)
