"""Price adjustments by staff, with a reason that the bill shows.

A draft is repriced with the adjustment. The price of a paid booking can only be reduced, before and
after its meeting: its bill is not repriced, but gets one more line, and the tax
changes in proportion. Extras, which raise it, are a change of the booking (amendments.py).

The stored adjustment is the amount that was applied, not the amount that was entered. So the
adjustments add up to what the bill shows, and the next repricing, perhaps in a more expensive room,
reduces the price by no more than that.
"""

from dataclasses import dataclass
from decimal import Decimal

from accounts.act import Act
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from reservations.booking import amendments
from reservations.booking.amendments import (
    call_off_changes,
    require_expected,
    require_version,
)
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_reservation
from reservations.models import LineItem, LineItemType, PriceAdjustment, Reservation, history
from reservations.models.status import Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook import money
from roombook.errors import InvalidRequest, ReservationNotOpen

ADJUSTABLE_STATUSES = frozenset({Status.NEW, Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What becomes of a reservation by an adjustment of its price."""

    reservation: Reservation
    old_lines: tuple[LineItem, ...]
    new_lines: tuple[LineItem, ...]
    old_total: Decimal
    new_total: Decimal
    refund: Decimal


def can_adjust(reservation: Reservation) -> bool:
    return reservation.status in ADJUSTABLE_STATUSES


@command
def adjust_price(
    act: Act,
    reservation_id: int,
    *,
    amount: Decimal,
    reason: str,
    expected_version: int | None = None,
    expected_total: Decimal | None = None,
) -> tuple[Adjustment, Obstacle]:
    """Add to a price or reduce it. The reduction of a paid booking is refunded.

    `expected_version` and `expected_total` are those of the preview: if one of them has changed
    since then, nothing is done. Both are needed, so that an adjustment that is confirmed twice is
    applied once, because a new total of 0 can be the same both times, and because the price of a
    draft can change without an amendment.
    """
    reservation = lock_reservation(reservation_id)
    lines = reservation.line_items.order_by("position")
    old_lines, old_total = tuple(lines), reservation.total_cost
    require_version(reservation, expected_version)
    applied = _apply(reservation, amount=amount, reason=reason, act=act)
    require_expected("price", reservation.total_cost, expected=expected_total)
    refund: Decimal = money.ZERO
    obstacle: Obstacle = None
    if not reservation.is_new:
        refund, obstacle = amendments.refund_reduction(
            reservation, old_total=old_total, reason=f"Price adjusted: {reason}"[:255], now=act.now
        )
        call_off_changes(reservation, now=act.now)
    changes = {
        "total_cost": (old_total, reservation.total_cost),
        "adjustment": (None, f"{money.format_amount(applied)}: {reason}"),
        "refund": (None, refund or None),
    }
    history.record_changes(reservation, changes, act)
    if not reservation.is_new:
        if reservation.status == Status.CONFIRMED:
            reservation.save(update_fields=reservation.advance_calendar(act.now))
        emails.send_price_reduced(reservation, refund=refund, reason=reason, now=act.now)
        post(reservation.pk, EventKind.ADJUSTED, by=act.user, now=act.now)
    new_lines, new_total = tuple(lines.all()), reservation.total_cost
    return Adjustment(reservation, old_lines, new_lines, old_total, new_total, refund), obstacle


def _apply(reservation: Reservation, *, amount: Decimal, reason: str, act: Act) -> Decimal:
    """Store the adjustment and add it to the bill, or raise; return what was applied.

    The caller holds the lock.
    """
    if not can_adjust(reservation):
        raise ReservationNotOpen(
            f"It is {reservation.status}: the price of a draft or of a booking can be adjusted."
        )
    if not reservation.is_new and amount >= 0:
        raise ReservationNotOpen(
            "It is paid, so its price can only be lowered here. Add an extra to raise it."
        )
    if money.round_amount(amount) != amount:
        raise InvalidRequest({"amount": "That is less than the smallest coin."})
    old_total = reservation.total_cost
    reservation.version += 1
    reservation.save(update_fields=["version"])
    adjustment = PriceAdjustment.objects.create(
        reservation=reservation, amount=amount, reason=reason, by=act.staff, at=act.now
    )
    if reservation.is_new:
        lines = bill.reprice(reservation).lines
        # Adjustments are priced in the order of their creation, so this one has the last line.
        kinds = {LineItemType.ADJUSTMENT, LineItemType.EXTRA}
        applied = [line.total for line in lines if line.type in kinds][-1]
    else:
        applied = bill.append_adjustment(reservation, amount=amount, reason=reason)
        if refusal := amendments.get_price_refusal(reservation, old_total=old_total):
            raise ReservationNotOpen(refusal)
    # Compare the line, not the total: changed rates can change the total of a draft as well.
    if not applied:
        raise ReservationNotOpen("There is nothing left to take off.")
    adjustment.amount = applied
    adjustment.save(update_fields=["amount"])
    return applied
