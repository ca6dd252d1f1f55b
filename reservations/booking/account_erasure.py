"""Decides whether an account may be erased; accounts/erasure.py erases it (B22.7)."""

import datetime as dt
import logging

from django.db.models import Q

from accounts import erasure
from accounts.act import Act
from accounts.models import AccountErasure, User, UserType
from accounts.sign_in import lock_verified
from payments import refunds
from payments.manual_payments import get_receivables
from payments.models import LedgerLine, Payment, PaymentState
from payments.statements import get_refunds_payable
from reservations.booking import alerts
from reservations.booking.locks import lock_drafts, lock_reservation
from reservations.models import BookingChange, ChangeState, Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from roombook.db.transactions import in_transaction
from roombook.errors import AccountInUse

logger = logging.getLogger(__name__)

STAFF = "An account of staff cannot be deleted. An administrator has to end its access first."
BOOKINGS_AHEAD = (
    "There are bookings or requests that have not ended yet. Cancel them first, or wait until they"
    " are over."
)
MONEY_OPEN = (
    "A payment or refund of an earlier booking is not finished yet. Please try again later, or"
    " contact us."
)


def erase_account(
    user_id: int, *, by: User | None, verified: User | None = None, now: dt.datetime
) -> None:
    """Cancel the account's drafts, end its links, and erase it.

    A second call does what the first left undone.

    `verified` is the account with the password that its owner has proved.

    Raises:
        AccountInUse: nothing was changed.
        InvalidRequest: the password has been changed since; nothing else was changed.
    """
    begun = _erase(user_id, by=by, verified=verified, now=now)
    # After a restore, the log says who has to be erased again (docs/privacy.md).
    logger.info("Account %s was erased.", user_id)
    erasure.finish(begun, now=now)


@in_transaction
def _erase(
    user_id: int, *, by: User | None, verified: User | None, now: dt.datetime
) -> AccountErasure:
    # What creates drafts takes the same locks in this order, so none is created meanwhile.
    lock_drafts(user_id, now=now)
    if verified is None:
        user = User.objects.lock(user_id)
    else:
        user = lock_verified(verified, field="password")
    _end_drafts_and_links(user, by=by, now=now)
    if obstacle := find_obstacle(user):
        raise AccountInUse(obstacle)
    return erasure.erase(user, by=by, now=now)


def find_obstacle(user: User) -> str:
    """Return why the account cannot be erased, or an empty text."""
    if user.type != UserType.ACCOUNT:
        return STAFF
    if Reservation.objects.for_user(user).filter(status__in=HOLDING_STATUSES).exists():
        return BOOKINGS_AHEAD
    return MONEY_OPEN if _is_money_open(user) else ""


def _end_drafts_and_links(user: User, *, by: User | None, now: dt.datetime) -> None:
    """Cancel the account's drafts, and end the changes that wait for a payment link.

    The drafts cost nothing, so nobody gets an e-mail. A change of a meeting that is over may wait
    with the names of guests. The rooms are locked in the order of their ids, as everywhere.
    """
    waiting = BookingChange.objects.filter(payment=None, state=ChangeState.STARTED)
    is_concerned = Q(status=Status.NEW) | Q(pk__in=waiting.values("reservation"))
    rows = Reservation.objects.for_user(user).filter(is_concerned).order_by("room", "pk")
    for pk in rows.values_list("pk", flat=True):
        row = lock_reservation(pk)
        row.end_waiting_change(message="The account was erased.", now=now)
        # A checkout may have begun before the lock.
        if row.is_new:
            row.transition_to(Status.CANCELLED, Act(by, now), cancelled_at=now)


def _is_money_open(user: User) -> bool:
    """Return whether a payment is in doubt, or money is owed or contested."""
    payments = Payment.objects.filter(reservation__user=user)
    in_doubt = payments.filter(state__in=[PaymentState.STARTED, PaymentState.AUTHORIZED])
    return (
        in_doubt.exists()
        or get_receivables(user).exists()
        or get_refunds_payable(LedgerLine.objects.filter(reservation__user=user)).exists()
        or alerts.get_open_disputes(payments).exists()
        or payments.filter(refunds__in=refunds.get_unhandled()).exists()
    )
