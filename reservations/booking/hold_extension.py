"""Staff extend the hold of a draft: until when that is possible, and doing it."""

import datetime as dt

from django.conf import settings

from accounts.act import Act
from reservations import availability
from reservations.booking.commands import Obstacle, command
from reservations.booking.drafts import reprice_if_outdated
from reservations.booking.holds import release_holds_for
from reservations.booking.locks import lock_draft, lock_drafts_of_customer
from reservations.models import Reservation, history
from roombook.errors import InvalidRequest, ReservationNotOpen


@command
def extend_hold(
    act: Act, reservation_id: int, *, until: dt.datetime
) -> tuple[Reservation, Obstacle]:
    """Extend a draft's hold (by staff). An expired hold starts again if the room is available.

    Raises InvalidRequest as `_validate_hold_end` does, or SlotUnavailable.
    """
    now = act.now
    lock_drafts_of_customer(reservation_id, now=now)
    reservation = lock_draft(reservation_id)
    if reservation.payable_until <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    _validate_hold_end(reservation, until, now=now)
    held_until = reservation.hold_until if reservation.is_held_at(now) else None
    if held_until is None:
        user = reservation.user
        release_holds_for(reservation, now=now)
        availability.evaluate_reservation(
            reservation, now=now, for_user=user
        ).raise_if_unavailable()
    reprice_if_outdated(reservation, act)
    reservation.holds_slot, reservation.hold_until = True, until
    reservation.price_held_until = None
    # The customer gets another reminder before the new hold expires.
    reservation.reminded_at = None
    reservation.save(update_fields=["holds_slot", "hold_until", "price_held_until", "reminded_at"])
    history.record_changes(reservation, {"hold_until": (held_until, until)}, act)
    return reservation, None


def can_extend_hold(reservation: Reservation, *, now: dt.datetime) -> bool:
    """Return whether a draft can hold its room for longer, or hold it again."""
    if not reservation.is_new:
        return False
    latest = get_latest_hold_end(reservation, now=now)
    if reservation.is_held_at(now):
        return reservation.hold_until is not None and latest > reservation.hold_until
    user = reservation.user
    return (
        latest > now
        and availability.evaluate_reservation(reservation, now=now, for_user=user).is_available
    )


def _validate_hold_end(reservation: Reservation, until: dt.datetime, *, now: dt.datetime) -> None:
    """Raise InvalidRequest if a draft's hold cannot be extended until that time."""
    problem = ""
    if until > get_latest_hold_end(reservation, now=now):
        problem = (
            f"A room can be held for at most {settings.HOLD_HOURS_STAFF} hours without payment,"
            " and not beyond the time until which it can be paid."
        )
    elif until <= now:
        problem = "That time has passed."
    elif reservation.hold_until and reservation.is_held_at(now) and until <= reservation.hold_until:
        problem = "The room is held until then already."
    if problem:
        raise InvalidRequest({"until": problem})


def get_latest_hold_end(reservation: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Return the latest full minute until which a draft can hold its room."""
    latest = min(now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF), reservation.payable_until)
    return latest.replace(second=0, microsecond=0)
