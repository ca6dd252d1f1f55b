"""Which promo code is good for which booking, and the taking and giving back of its uses (B13)."""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from reservations.models import PromoCode, PromoRedemption, Reservation
from reservations.models.codes import normalize_code
from reservations.pricing.restrictions import is_permitted
from roombook import money
from roombook.errors import PromoCodeInvalid

if TYPE_CHECKING:
    from django.db import models


def get_promo_code(code: str) -> PromoCode:
    """The code as a customer types it: any case, space around it."""
    try:
        return PromoCode.objects.get(code=normalize_code(code), is_active=True)
    except PromoCode.DoesNotExist:
        raise PromoCodeInvalid from None


def require_usable(promo: PromoCode, reservation: Reservation, *, now: dt.datetime) -> None:
    """Raise unless this reservation may use the code now; limits are asked again at checkout.

    A code for other centers, rooms or days reads like an unknown one: customers learn nothing
    of offers that are not for them.
    """
    room = reservation.room
    day = reservation.start.astimezone(room.center.zone).date()
    if (
        not promo.is_active
        or (promo.meeting_from and day < promo.meeting_from)
        or (promo.meeting_until and day > promo.meeting_until)
        or not is_permitted(promo.centers, room.center_id)
        or not is_permitted(promo.room_types, room.resource_type_id)
    ):
        raise PromoCodeInvalid
    if promo.valid_from and now < promo.valid_from:
        raise PromoCodeInvalid("This promo code is not valid yet.")
    if promo.valid_until and now >= promo.valid_until:
        raise PromoCodeInvalid("This promo code has expired.")
    if promo.max_uses is not None and promo.uses >= promo.max_uses:
        raise PromoCodeInvalid("This promo code has been used up.")
    if promo.max_uses_per_account is not None:
        used = get_open_redemptions(promo).filter(user=reservation.user_id).count()
        if used >= promo.max_uses_per_account:
            raise PromoCodeInvalid("You have used this promo code already.")


def require_amounts_allowed(promo: PromoCode, *, base: Decimal, discount: Decimal) -> None:
    """Raise where the booking is too small for the code, or the code's budget for the booking."""
    if promo.minimum_spend is not None and base < promo.minimum_spend:
        raise PromoCodeInvalid(
            "This promo code is for bookings of"
            f" {money.format_amount(promo.minimum_spend)} or more."
        )
    if promo.budget is not None and promo.spent + discount > promo.budget:
        raise PromoCodeInvalid("This promo code has been used up.")


def get_open_redemptions(promo: PromoCode) -> "models.QuerySet[PromoRedemption]":
    return PromoRedemption.objects.filter(promo_code=promo, given_back_at__isnull=True)


def redeem(
    reservation: Reservation, *, discount: Decimal, is_kept: bool = False, now: dt.datetime
) -> None:
    """Use the reservation's code up by one, or raise; the caller holds the reservation's lock.

    `is_kept`: a booking that had it and is only priced anew. That it was good for the booking is
    settled, and the use that was given back a moment ago is there to be taken again.
    """
    assert reservation.promo_code_id is not None  # where else would the discount come from
    promo = PromoCode.objects.select_for_update(no_key=True).get(pk=reservation.promo_code_id)
    if not is_kept:
        require_usable(promo, reservation, now=now)
    if promo.budget is not None and promo.spent + discount > promo.budget:
        raise PromoCodeInvalid("This promo code has been used up.")
    PromoRedemption.objects.create(
        promo_code=promo,
        reservation=reservation,
        user_id=reservation.user_id,
        amount=discount,
        taken_at=now,
    )
    _count(promo, uses=1, spent=discount)


def return_redemption(reservation: Reservation, *, now: dt.datetime) -> None:
    """Give the use back; a second time does nothing. The caller holds the reservation's lock."""
    redemption = reservation.promo_redemptions.filter(given_back_at__isnull=True).first()
    if redemption is None:
        return
    redemption.given_back_at = now
    redemption.save(update_fields=["given_back_at"])
    promo = PromoCode.objects.select_for_update(no_key=True).get(pk=redemption.promo_code_id)
    _count(promo, uses=-1, spent=-redemption.amount)


def _count(promo: PromoCode, *, uses: int, spent: Decimal) -> None:
    """Keep the code's counters; its row is locked. Added here: SQLite would add money in binary."""
    # Never below nothing, whatever became of the counters: cancelling must not fail for that.
    promo.uses = max(0, promo.uses + uses)
    promo.spent = max(money.ZERO, promo.spent + spent)
    promo.save(update_fields=["uses", "spent"])
