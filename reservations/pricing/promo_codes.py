"""Promo codes: which code is valid for which booking, and the ledger of their uses (B13)."""

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Q

from reservations.models import PromoCode, PromoRedemption, Reservation
from reservations.models.codes import normalize_code
from roombook import money
from roombook.errors import PromoCodeInvalid

if TYPE_CHECKING:
    from django.db import models

    from centers.models import MeetingRoom

USED_UP = "This promo code has been used up."


# --- Validity ------------------------------------------------------------------------------------


def get_promo_code(code: str) -> PromoCode:
    """Return the active promo code, ignoring case, or raise PromoCodeInvalid."""
    try:
        return PromoCode.objects.get(code=normalize_code(code), is_active=True)
    except PromoCode.DoesNotExist:
        raise PromoCodeInvalid from None


def require_usable(promo_code: PromoCode, reservation: Reservation, *, now: dt.datetime) -> None:
    """Raise PromoCodeInvalid unless the reservation can use the code now.

    Checkout calls this again.
    """
    if not promo_code.is_active:
        raise PromoCodeInvalid
    require_right_meeting(promo_code, reservation)
    if promo_code.valid_from and now < promo_code.valid_from:
        raise PromoCodeInvalid("This promo code is not valid yet.")
    if promo_code.valid_until and now >= promo_code.valid_until:
        raise PromoCodeInvalid("This promo code has expired.")
    if promo_code.max_uses is not None and promo_code.uses >= promo_code.max_uses:
        raise PromoCodeInvalid(USED_UP)
    if promo_code.max_uses_per_account is not None:
        uses = get_open_redemptions(promo_code).filter(user=reservation.user_id).count()
        if uses >= promo_code.max_uses_per_account:
            raise PromoCodeInvalid("You have used this promo code already.")


def require_right_meeting(promo_code: PromoCode, reservation: Reservation) -> None:
    """Raise PromoCodeInvalid unless the code is for the reservation's room, center and day.

    This is the error of an unknown code, so that customers learn nothing about offers that are not
    for them.
    """
    room = reservation.room
    day = reservation.start.astimezone(room.center.zone).date()
    if (
        (promo_code.meeting_from and day < promo_code.meeting_from)
        or (promo_code.meeting_until and day > promo_code.meeting_until)
        or not _is_valid_for_room(promo_code, room)
    ):
        raise PromoCodeInvalid


def _is_valid_for_room(promo_code: PromoCode, room: "MeetingRoom") -> bool:
    """Return whether the restrictions of the code, if any, include the room."""
    rows = PromoCode.objects.filter(
        Q(centers__isnull=True) | Q(centers=room.center_id),
        Q(room_types__isnull=True) | Q(room_types=room.resource_type_id),
        pk=promo_code.pk,
    )
    return rows.exists()


def require_amounts_allowed(promo_code: PromoCode, *, base: Decimal, discount: Decimal) -> None:
    """Raise PromoCodeInvalid if the booking is below the minimum, or the budget is exhausted."""
    minimum = promo_code.minimum_spend
    if minimum is not None and base < minimum:
        raise PromoCodeInvalid(
            f"This promo code is for bookings of {money.format_amount(minimum)} or more."
        )
    _require_budget(promo_code, discount)


def _require_budget(promo_code: PromoCode, discount: Decimal) -> None:
    if promo_code.budget is not None and promo_code.spent + discount > promo_code.budget:
        raise PromoCodeInvalid(USED_UP)


# --- The ledger ----------------------------------------------------------------------------------


def get_open_redemptions(promo_code: PromoCode) -> "models.QuerySet[PromoRedemption]":
    """Return the uses of a code that were not returned."""
    return PromoRedemption.objects.filter(promo_code=promo_code, given_back_at__isnull=True)


def redeem(
    reservation: Reservation,
    *,
    discount: Decimal,
    is_kept: bool = False,
    is_by_staff: bool = False,
    now: dt.datetime,
) -> None:
    """Use the reservation's promo code once, or raise. The caller holds the reservation's lock.

    `is_kept`: the booking had already used the code and is only repriced. The code was valid then,
    and the use that was just returned is available. If staff change the booking, they can also
    choose a room and a day that the code is not for (B27.1).
    """
    assert reservation.promo_code_id is not None  # There is no discount without a code.
    promo_code = _lock(reservation.promo_code_id)
    if not is_kept:
        require_usable(promo_code, reservation, now=now)
    elif not is_by_staff:
        require_right_meeting(promo_code, reservation)
    _require_budget(promo_code, discount)
    PromoRedemption.objects.create(
        promo_code=promo_code,
        reservation=reservation,
        user_id=reservation.user_id,
        amount=discount,
        taken_at=now,
    )
    _update_counters(promo_code, uses=1, spent=discount)


def return_redemption(reservation: Reservation, *, now: dt.datetime) -> None:
    """Return the reservation's use of its code. A second call changes nothing.

    The caller holds the reservation's lock.
    """
    redemption = reservation.promo_redemptions.filter(given_back_at__isnull=True).first()
    if redemption is None:
        return
    redemption.given_back_at = now
    redemption.save(update_fields=["given_back_at"])
    promo_code = _lock(redemption.promo_code_id)
    _update_counters(promo_code, uses=-1, spent=-redemption.amount)


def _lock(promo_code_id: int) -> PromoCode:
    return PromoCode.objects.select_for_update(no_key=True).get(pk=promo_code_id)


def _update_counters(promo_code: PromoCode, *, uses: int, spent: Decimal) -> None:
    """Add to the counters of a locked code, in Python: SQLite would use binary floating point."""
    # Never below 0: cancelling must not fail because a counter was wrong.
    promo_code.uses = max(0, promo_code.uses + uses)
    promo_code.spent = max(money.ZERO, promo_code.spent + spent)
    promo_code.save(update_fields=["uses", "spent"])
