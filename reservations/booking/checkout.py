"""Checkout that survives a crash at any point (B16).

    T1   take the slot, the promo use and the hours; write down that a payment begins
         authorize at the gateway, no transaction open
    T2   write down the booking (or give everything back): the moment it is acknowledged
         capture at the gateway, no transaction open; if that fails it stays owed

Nothing is charged before the booking is durable, and nothing is held for ever: whoever comes
later, the client's retry or `reconcile_payments`, settles what a crash left behind.
"""

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from accounts.limits import CARD_DECLINED
from payments import gateways, lifecycle, refunds, saved_cards
from payments.cards import Card
from payments.gateways.base import GatewayPayment, GatewayRefused, GatewayUnavailable
from payments.models import (
    InvalidPaymentTransition,
    Payment,
    PaymentState,
    Refund,
    RefundState,
    SavedCard,
)
from reservations import availability
from reservations.booking.drafts import release_conflicting_holds
from reservations.booking.locks import lock_reservation
from reservations.models import Partner, Reservation
from reservations.models.codes import normalize_code
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.notifications import emails
from reservations.pricing import bill
from roombook.db.compiled_queries import compiled_query, datetime_param, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    NotFound,
    ReservationNotOpen,
    ServiceUnavailable,
)

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PaymentMethod:
    """How the customer wants to pay, as the request says it; judged when money is needed."""

    use_saved: bool = False
    payment_info: Mapping[str, Any] | None = None
    save_card: bool = False


OUTCOME_UNKNOWN = (
    "We cannot tell yet whether the booking went through. Please repeat it: that is safe, and the"
    " card is charged at most once."
)


def check_out(
    reservation_id: int,
    *,
    user: "User",
    payment_method: PaymentMethod,
    partner_code: str = "",
    now: dt.datetime,
) -> Reservation:
    """Pay for a draft and book it; repeating it is harmless.

    Returns the reservation as Confirmed, Pending or (under way or in doubt) Processing. Raises
    CardDeclined, SlotUnavailable, PromoCodeInvalid, AllowanceExhausted, ReservationNotOpen,
    NoSavedCard or InvalidRequest, and then nothing is charged; ServiceUnavailable where the
    database went away, and then a repetition tells.
    """
    try:
        return _check_out(
            reservation_id,
            user=user,
            payment_method=payment_method,
            partner_code=partner_code,
            now=now,
        )
    except (OperationalError, InterfaceError) as error:
        raise ServiceUnavailable(OUTCOME_UNKNOWN) from error


def _check_out(
    reservation_id: int,
    *,
    user: "User",
    payment_method: PaymentMethod,
    partner_code: str,
    now: dt.datetime,
) -> Reservation:
    resolve_stale_payments(reservation_id, user=user, now=now)
    reservation = get_own_reservation(reservation_id, user)
    if is_already_submitted(reservation):
        return reservation
    partner = get_partner(partner_code)
    source = _source(reservation, payment_method, now)
    reservation, payment = _begin(
        reservation_id, user=user, partner=partner, pays=source is not None, now=now
    )
    if payment is None or source is None:
        return reservation
    reservation = _pay(payment, source, by=user, now=now)
    if (
        payment_method.save_card
        and isinstance(source, Card)
        and reservation.status in BOOKED_STATUSES
    ):
        saved_cards.save_charged_card(user, source, now=now)
    return reservation


def dry_run(
    reservation_id: int,
    *,
    user: "User",
    payment_method: PaymentMethod,
    partner_code: str = "",
    now: dt.datetime,
) -> Reservation:
    """TestMode: check slot, price, promo code, hours and card; store, hold and charge nothing."""
    reservation = get_own_reservation(reservation_id, user)
    if is_already_submitted(reservation):
        return reservation
    partner = get_partner(partner_code)
    source = _source(reservation, payment_method, now)
    _take_and_let_go(reservation_id, user=user, partner=partner, now=now)
    if source is not None:
        lifecycle.check_card(source)
    return get_own_reservation(reservation_id, user)


def is_already_submitted(reservation: Reservation) -> bool:
    """Whether a checkout of it went through or is under way, so that this one is answered alike.

    Raises ReservationNotOpen where it is neither that nor a draft.
    """
    if reservation.status in BOOKED_STATUSES or reservation.status == Status.PROCESSING:
        return True
    if not reservation.is_new:
        raise ReservationNotOpen
    return False


def get_own_reservation(reservation_id: int, user: "User") -> Reservation:
    """The account's reservation as it is now."""
    reservation = own_reservation.first(user=user.pk, reservation=reservation_id)
    if reservation is None:
        raise NotFound
    reservation.user = user
    return reservation


@compiled_query(keep_plan=True)
def own_reservation() -> "QuerySet[Any, Reservation]":
    rows = Reservation.objects.select_related("room__center")
    return rows.filter(user=int_param("user"), pk=int_param("reservation"))


def get_partner(code: str) -> Partner | None:
    """The active partner of that code, in any case; none for an empty one."""
    code = normalize_code(code)
    if not code:
        return None
    partner = Partner.objects.filter(code=code, is_active=True).first()
    if partner is None:
        raise InvalidRequest({"partner_code": "There is no such partner."})
    return partner


# --- The steps -----------------------------------------------------------------------------------


@in_transaction
def _begin(
    reservation_id: int, *, user: "User", partner: Partner | None, pays: bool, now: dt.datetime
) -> tuple[Reservation, Payment | None]:
    """T1: take everything that the booking needs. A rival's outcome is returned as it is."""
    reservation = lock_reservation(reservation_id, owner=user)
    if is_already_submitted(reservation):
        return reservation, None
    _take(reservation, partner=partner, now=now)
    if not reservation.total_cost:
        _book(reservation, is_live_money=gateways.get_current_gateway().is_live, by=user, now=now)
        return reservation, None
    if not pays:
        # Free when the card was judged, and no longer: the customer has to see the new total.
        raise ReservationNotOpen("The price has changed. Please look at it again.")
    # Taken before the gateway is asked, so that rivals cannot try more cards than allowed; and only
    # by whoever will ask it, so that a second tap on the button costs no try.
    CARD_DECLINED.attempt(user.pk, now=now)
    reservation.transition_to(Status.PROCESSING, by=user, now=now)
    payment = lifecycle.create_payment(
        reservation_id=reservation.pk,
        amount=reservation.total_cost,
        currency=reservation.currency,
        gateway=gateways.get_current_gateway(),
        now=now,
        lease=dt.timedelta(seconds=settings.PAYMENT_LEASE_SECONDS),
    )
    return reservation, payment


def _take(reservation: Reservation, *, partner: Partner | None, now: dt.datetime) -> None:
    """Take the slot, the promo use and the hours, or raise. The caller holds the lock."""
    if not reservation.is_new:
        raise ReservationNotOpen
    if reservation.start <= now:
        raise ReservationNotOpen("This reservation's time has passed.")
    user = reservation.user
    release_conflicting_holds(
        reservation.room, reservation.span, user=user, now=now, but=reservation
    )
    availability.evaluate_reservation(reservation, now=now, for_user=user).require()
    bill.consume_benefits(reservation, now=now)
    if partner is not None:
        reservation.partner = partner
        reservation.save(update_fields=["partner"])


@in_transaction
def _take_and_let_go(
    reservation_id: int, *, user: "User", partner: Partner | None, now: dt.datetime
) -> None:
    """All of T1's own judgement, and not a row changed."""
    _take(lock_reservation(reservation_id, owner=user), partner=partner, now=now)
    transaction.set_rollback(True)


def _pay(
    payment: Payment, source: Card | SavedCard, *, by: "User", now: dt.datetime
) -> Reservation:
    """Authorize, T2, capture."""
    try:
        outcome = lifecycle.authorize_payment(
            payment, source, description=f"Reservation {payment.reservation_id}"
        )
    except GatewayUnavailable:
        # Nobody knows: the slot stays held until somebody can ask.
        rows = Reservation.objects.select_related("room__center")
        return _under_way(rows.get(pk=payment.reservation_id))
    reservation, payment = apply_authorization(payment, outcome, by=by, now=now)
    if payment.state == PaymentState.DECLINED:
        raise CardDeclined(payment.message)
    try_fulfil_obligations(payment, now=now)
    return _under_way(reservation)


def _under_way(reservation: Reservation) -> Reservation:
    """The reservation, unless somebody settled this payment meanwhile by calling it off."""
    if reservation.status in BOOKED_STATUSES or reservation.status == Status.PROCESSING:
        return reservation
    raise ReservationNotOpen("The payment was called off. You were not charged.")


@in_transaction
def apply_authorization(
    payment: Payment, outcome: GatewayPayment, *, by: "User | None" = None, now: dt.datetime
) -> tuple[Reservation, Payment]:
    """T2: write down what the gateway said, and what that makes of the reservation.

    `by` is the customer who waits for it; None where somebody settles what a crash left behind.
    Safe to repeat and to race: only the one who ends the payment's doubt changes the reservation,
    which may by then be Processing again for another payment.
    """
    reservation = lock_reservation(payment.reservation_id)
    payment = lifecycle.lock_payment(payment.pk)
    in_doubt = payment.state == PaymentState.STARTED
    if in_doubt and payment.is_called_off and outcome.state == "authorized":
        # Too late: somebody is letting this money go. It stays in doubt until that is done.
        return reservation, payment
    lifecycle.apply_gateway_result(payment, outcome, now=now)
    if not in_doubt or reservation.status != Status.PROCESSING:
        return reservation, payment
    # Nobody is charged for a meeting that had begun before anybody knew: that money is let go.
    if payment.state in FUNDED_STATES and reservation.start > now:
        _book(reservation, is_live_money=payment.is_live, by=by, now=now)
    else:
        bill.return_benefits(reservation, now=now)
        # Held a little longer, for another card.
        hold = dt.timedelta(minutes=settings.HOLD_MINUTES_AFTER_DECLINE)
        reservation.transition_to(Status.NEW, by=by, now=now, hold_until=now + hold)
    if payment.state != PaymentState.DECLINED:
        # The try that T1 took; given back here, so that a worker that dies costs the customer none.
        CARD_DECLINED.forgive(reservation.user_id)
    return reservation, payment


def _book(
    reservation: Reservation, *, is_live_money: bool, by: "User | None", now: dt.datetime
) -> None:
    live_room = reservation.room.is_live_inventory
    reservation.transition_to(
        Status.CONFIRMED if live_room else Status.PENDING,
        by=by,
        now=now,
        booked_at=now,
        is_live=live_room and is_live_money,
    )
    emails.send_checkout_completed(reservation, now=now)


# --- Settling ------------------------------------------------------------------------------------


def resolve_stale_payments(reservation_id: int, *, user: "User | None", now: dt.datetime) -> None:
    """Settle what a dead worker left of this reservation, once its lease is over.

    What cannot be settled stays in doubt, for reconcile_payments to report.
    """
    for payment in stale_payments(reservation=reservation_id, now=now):
        if user is not None and payment.reservation.user_id != user.pk:
            continue
        try:
            resolve_payment(payment, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s is still in doubt: no answer.", payment.key)
        except (GatewayRefused, InvalidPaymentTransition):
            logger.exception("Payment %s cannot be settled.", payment.key)


@compiled_query(keep_plan=True)
def stale_payments() -> "QuerySet[Payment]":
    rows = Payment.objects.stale(datetime_param("now")).filter(reservation=int_param("reservation"))
    return rows.select_related("reservation")


def resolve_payment(payment: Payment, *, now: dt.datetime) -> Payment:
    """Find out what became of a payment whose worker is gone, and conclude the checkout."""
    _, payment = apply_authorization(payment, lifecycle.fetch_gateway_status(payment), now=now)
    try_fulfil_obligations(payment, now=now)
    return payment


# A booking may rest on a payment in one of these.
FUNDED_STATES = frozenset({PaymentState.AUTHORIZED, PaymentState.CAPTURED})

# What an authorized payment is owed follows from its reservation alone.
CAPTURE_DUE_STATUSES = frozenset({Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})
NOT_BOOKED_STATUSES = frozenset({Status.DECLINED, Status.EXPIRED, Status.NEW})
VOID_DUE_STATUSES = NOT_BOOKED_STATUSES | {Status.CANCELLED}


def try_fulfil_obligations(payment: Payment, *, now: dt.datetime) -> None:
    """Do at the gateway what the reservation's status asks for; what fails stays owed."""
    try:
        fulfil_obligations(payment, now=now)
    except GatewayUnavailable:
        logger.warning("Payment %s: the gateway does not answer; it stays owed.", payment.key)
    except Exception:
        # The booking stands whatever happens here; reconcile_payments reports what is left.
        logger.exception("Payment %s: what is owed could not be done.", payment.key)


def fulfil_obligations(payment: Payment, *, now: dt.datetime) -> Payment:
    """Capture or void an authorized payment as its reservation says, then pay back what is owed.

    Money that was taken without us (in the gateway's dashboard) for what is no booking goes back.
    """
    [payment] = payment_with_reservation(payment=payment.pk)
    status = payment.reservation.status
    if payment.state == PaymentState.AUTHORIZED and status in CAPTURE_DUE_STATUSES:
        payment = lifecycle.capture_payment(payment, now=now)
    elif payment.state == PaymentState.AUTHORIZED and status in VOID_DUE_STATUSES:
        payment = lifecycle.void_payment(payment, now=now)
        if payment.state == PaymentState.CAPTURED:
            _owe_all_back(payment, now=now)
    elif payment.state == PaymentState.CAPTURED and status in NOT_BOOKED_STATUSES:
        _owe_all_back(payment, now=now)
    for refund in pending_refunds(payment=payment.pk):
        refunds.execute_refund(refund, now=now)
    return payment


@compiled_query(keep_plan=True)
def payment_with_reservation() -> "QuerySet[Payment]":
    return Payment.objects.select_related("reservation").filter(pk=int_param("payment"))


@compiled_query(keep_plan=True)
def pending_refunds() -> "QuerySet[Refund]":
    rows = Refund.objects.filter(payment=int_param("payment"), state=RefundState.STARTED)
    return rows.select_related("payment").order_by("pk")


@in_transaction
def _owe_all_back(payment: Payment, *, now: dt.datetime) -> None:
    """Write down that all of a payment is owed back; nothing where it is written down already."""
    payment = lifecycle.lock_payment(payment.pk)
    left = refunds.get_refundable_amount(payment)
    if left:
        refunds.create_refund(payment, amount=left, reason="Taken for no booking", now=now)


# --- Helpers -------------------------------------------------------------------------------------


def _source(
    reservation: Reservation, payment_method: PaymentMethod, now: dt.datetime
) -> Card | SavedCard | None:
    """The card to pay with; none is needed, and none is looked at, where nothing is to be paid."""
    if not reservation.total_cost:
        return None
    return lifecycle.get_payment_source(
        reservation.user,
        use_saved=payment_method.use_saved,
        payment_info=payment_method.payment_info,
        now=now,
    )
