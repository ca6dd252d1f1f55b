"""What every way to pay for a draft checks and claims before it is booked (B16.1, B26)."""

import datetime as dt
from decimal import Decimal

from django.db.models import QuerySet

from accounts.act import Act
from accounts.models import User
from reservations import availability
from reservations.booking import drafts
from reservations.booking.holds import release_holds_for
from reservations.booking.locks import lock_reservation
from reservations.models import Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.pricing import bill
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import NotFound, ReservationNotOpen

PRICE_HAS_CHANGED = "The price has changed. Please look at it again."
LINK_HAS_ENDED = "This payment link has ended. You were not charged."
EARLIER_PAYMENT = "An earlier payment of this reservation has not been returned yet."


def get_own_reservation(reservation_id: int, user: User) -> Reservation:
    """Return the user's reservation with its room and center, or raise NotFound."""
    reservation = own_reservation.first(user=user.pk, reservation=reservation_id)
    if reservation is None:
        raise NotFound
    reservation.user = user
    return reservation


@compiled_query(keep_plan=True)
def own_reservation() -> QuerySet[Reservation]:
    rows = Reservation.objects.select_related("room__center")
    return rows.filter(user=int_param("user"), pk=int_param("reservation"))


def is_already_submitted(reservation: Reservation) -> bool:
    """Return whether an earlier checkout has succeeded or is in progress.

    Raises ReservationNotOpen if the reservation is not a draft either.
    """
    if reservation.status in BOOKED_STATUSES or reservation.status == Status.PROCESSING:
        return True
    if not reservation.is_new:
        raise ReservationNotOpen
    return False


def require_current_price(
    draft: Reservation, *, shown_total: Decimal | None = None, by: User, now: dt.datetime
) -> None:
    """Update an outdated price. Raise ReservationNotOpen if nobody has seen the total.

    So a Checkout whose answer was lost can be repeated: the new total is charged only after another
    response has shown it. `shown_total` is the total that another page has just shown.
    """
    has_changed = drafts.has_outdated_price(draft, now=now) and _reprice(draft, by=by, now=now)
    is_unseen = draft.has_unseen_price if shown_total is None else draft.total_cost != shown_total
    if has_changed or is_unseen:
        raise ReservationNotOpen(PRICE_HAS_CHANGED)


@in_transaction
def _reprice(draft: Reservation, *, by: User, now: dt.datetime) -> bool:
    reservation = lock_reservation(draft.pk, room_id=draft.room_id)
    if not reservation.is_new or reservation.start <= now:
        return False
    return drafts.reprice_if_outdated(reservation, Act(by, now))


def require_open_link(reservation: Reservation, number: int) -> None:
    """Raise ReservationNotOpen if the payment link with the number must not be paid (any more).

    It may have been cancelled, or the account disabled, since the payer has opened it. The caller
    holds the lock.
    """
    is_active = User.objects.filter(pk=reservation.user_id, is_active=True).exists()
    if reservation.payment_link_number != number or not is_active:
        raise ReservationNotOpen(LINK_HAS_ENDED)


def claim(draft: Reservation, *, now: dt.datetime) -> Reservation:
    """Lock the reservation, and claim all that the booking needs.

    If another request has submitted it meanwhile, return it unchanged: it is no draft any more.
    Raises ReservationNotOpen if another request has changed the total, or the errors of `consume`.
    """
    reservation = lock_reservation(draft.pk, room_id=draft.room_id)
    if is_already_submitted(reservation):
        return reservation
    if reservation.total_cost != draft.total_cost:
        raise ReservationNotOpen(PRICE_HAS_CHANGED)
    consume(reservation, now=now)
    return reservation


def consume(reservation: Reservation, *, now: dt.datetime) -> None:
    """Claim the slot, the promo code and the included hours, or raise.

    The caller holds the lock.
    """
    if not reservation.is_new:
        raise ReservationNotOpen
    if reservation.start <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    user = reservation.user
    release_holds_for(reservation, now=now)
    availability.evaluate_reservation(reservation, now=now, for_user=user).raise_if_unavailable()
    bill.consume_benefits(reservation, now=now)
