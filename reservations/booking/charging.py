"""A card pays for a purchase: the booking of a draft, or the difference of a change (B16, B27).

The payment gateway is never called inside a database transaction. So each charge takes four steps:

1. A claim: in a transaction, lock and check what is wanted, and create a Payment with a lease.
2. The gateway authorizes the amount.
3. `conclude`: in a transaction, store the answer, and conclude the purchase or abandon it. From
   this commit on, that is acknowledged.
4. `settle`: the gateway captures the amount, or voids it if the purchase was abandoned.

If a worker dies in between, the next request continues with step 3, as soon as the lease has
expired: the customer's retry, or the command `reconcile_payments`, which runs every minute. A
`Purchase` is built from stored rows, in the first run as well, so that both do the same. Every
step may be repeated. docs/checkout.md says what happens after a crash at each step.
"""

import datetime as dt
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar, Self, TypeGuard

from django.conf import settings
from django.db import IntegrityError
from django.db.models import QuerySet
from django.dispatch import receiver

from accounts.act import Act
from accounts.limits import CARD_DECLINED, check_declined_cards, get_payer_key
from accounts.models import User
from payments import gateways, lifecycle, refunds
from payments.cards import Card, CardFields
from payments.gateway_events import customer_acted, refund_became_due
from payments.gateway_results import apply_gateway_result, lock_payment
from payments.gateways.base import GatewayPayment, GatewayRefused, GatewayUnavailable
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import (
    InvalidPaymentTransition,
    Payment,
    PaymentPurpose,
    PaymentState,
    Refund,
    SavedCard,
)
from reservations.models import Reservation
from reservations.models.reservation import get_own_reservation
from reservations.models.status import Status
from roombook.db.compiled_queries import compiled_query, datetime_param, int_param
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, ReservationNotOpen

logger = logging.getLogger(__name__)

Source = Card | SavedCard

# A booking can rely on a payment in one of these states.
FUNDED_STATES = frozenset({PaymentState.AUTHORIZED, PaymentState.CAPTURED})

# A payment that counts is captured if its reservation has one of these.
CAPTURE_DUE_STATUSES = frozenset({Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})


@dataclass(frozen=True, slots=True)
class PaymentMethod:
    """How the customer wants to pay. It is validated only if there is something to pay.

    `one_time_card` was entered on the page of a payment link: the gateway stores it, and it is not
    the account's saved card. Without `is_customer_present`, nobody can confirm the payment at the
    bank.
    """

    use_saved_card: bool = False
    card: CardFields | None = None
    save_card: bool = False
    one_time_card: SavedCard | None = None
    is_customer_present: bool = True
    # Of the payer, for the limit of declined cards; empty if a member of staff pays.
    network_address: str = ""

    @property
    def is_by_link(self) -> bool:
        return self.one_time_card is not None

    def get_source(self, customer: User, *, now: dt.datetime) -> Source:
        """Return the card to charge.

        Raises TooManyRequests after too many declined cards from the same network, or the errors
        of `lifecycle.get_payment_source`.
        """
        check_declined_cards(self.network_address, is_by_link=self.is_by_link, now=now)
        return self.one_time_card or lifecycle.get_payment_source(
            customer, use_saved=self.use_saved_card, payment_info=self.card, now=now
        )

    def may_wait(self, source: Source | None) -> TypeGuard[SavedCard]:
        """Return whether the payment may wait until the customer has confirmed it (B21.3)."""
        return self.is_customer_present and lifecycle.is_confirmable(source)

    def take_unreported_decline(
        self, payments: QuerySet[Payment], source: Source | None
    ) -> Payment | None:
        """Return, once, the last of these payments that was declined while it waited (B21.3).

        A webhook or `reconcile_payments` may have recorded that before the customer's next request,
        which must not charge the same card again. None if there is nothing to report.
        """
        if not self.may_wait(source):
            return None
        unreported = payments.filter(
            has_unreported_decline=True,
            is_by_link=self.is_by_link,
            created_at__gte=source.created_at,
        )
        payment = unreported.order_by("pk").last()
        was_taken = payment is not None and unreported.update(has_unreported_decline=False)
        return payment if was_taken else None

    def count_attempt(self, reservation: Reservation, *, now: dt.datetime) -> None:
        """Count an attempt to charge a card (B16.6). `conclude` gives it back if it succeeds.

        Call it where the payment is created, so that a double click is one attempt.
        """
        key = get_payer_key(reservation.user_id, reservation.pk if self.is_by_link else None)
        CARD_DECLINED.attempt(key, now=now)


# Staff charge the saved card of a customer who is not there.
SAVED_CARD_OF_ABSENT = PaymentMethod(use_saved_card=True, is_customer_present=False)


# --- The steps ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request has claimed (step 1).

    There is no `payment` if nothing is to be paid, and no `source` if it is the payment of an
    earlier request, whose outcome is returned.
    """

    reservation: Reservation
    payment: Payment | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Purchase(ABC):
    """What a payment pays for. The rows that it needs are locked.

    Only `lock` creates one, so it knows nothing that a recovery would not know.
    """

    reservation: Reservation

    purpose: ClassVar[PaymentPurpose]
    # For the gateway, followed by the number of the reservation.
    description: ClassVar[str]
    kinds: ClassVar[dict[str, type["Purchase"]]] = {}

    def __init_subclass__(cls) -> None:
        Purchase.kinds[cls.purpose] = cls

    @classmethod
    @abstractmethod
    def lock(
        cls, payment: Payment, *, may_be_paid: bool, room_id: int | None, now: dt.datetime
    ) -> Self:
        """Lock what the payment pays for and, unless it `may_be_paid`, what abandoning it needs."""

    def pays(self, now: dt.datetime) -> bool:
        """Return whether the payment counts as soon as it is authorized.

        If only `conclude` finds that out, that sets `Payment.counts`.
        """
        return False

    @abstractmethod
    def conclude(self, payment: Payment, act: Act) -> None:
        """Do what is paid now, or abandon it if that is not possible any more."""

    @abstractmethod
    def abandon(self, payment: Payment, act: Act) -> None:
        """Give back what was claimed: the card was declined, or the payment voided."""

    def is_attempt(self, payment: Payment) -> bool:
        """Return whether the payment counts as the payer's attempt to charge a card (B16.6)."""
        return True


def charge(claim: Claim, method: PaymentMethod, act: Act) -> Claim:
    """Take the steps after the claim, and return what became of it.

    The payment is not resolved if the gateway does not answer: then its outcome is unknown, and
    everything stays claimed. Nor is it if the customer has to confirm it at the bank.

    Raises CardDeclined.
    """
    payment, source = claim.payment, claim.source
    if payment is not None and source is not None:
        kind = Purchase.kinds[payment.purpose]
        try:
            result = lifecycle.authorize_payment(
                payment,
                source,
                description=f"{kind.description} {payment.reservation_id}",
                on_session=method.may_wait(source),
            )
        except GatewayUnavailable:
            # Another process can have called off the payment meanwhile.
            rows = Reservation.objects.select_related("room__center")
            return replace(claim, reservation=rows.get(pk=payment.reservation_id))
        reservation, payment = conclude(payment, result, act, room_id=claim.reservation.room_id)
        claim = replace(claim, reservation=reservation, payment=payment)
    if payment is not None and payment.state == PaymentState.DECLINED:
        raise CardDeclined(payment.message)
    if payment is not None and source is not None:
        _try_settle(payment, now=act.now)
    return claim


@in_transaction
def conclude(
    payment: Payment, result: GatewayPayment, act: Act, *, room_id: int | None = None
) -> tuple[Reservation, Payment]:
    """Store the gateway's answer, and conclude what the payment pays for or abandon it.

    Repeated and concurrent calls are safe: only the call that resolves the payment changes the
    reservation. The act is that of the user who waits for the answer, or of a job when a payment is
    recovered. `room_id` saves a query (see `lock_reservation`).
    """
    may_be_paid = result.state in {"action_required", *FUNDED_STATES}
    kind = Purchase.kinds[payment.purpose]
    purchase = kind.lock(payment, may_be_paid=may_be_paid, room_id=room_id, now=act.now)
    payment = lock_payment(payment.pk)
    if payment.state != PaymentState.STARTED:
        apply_gateway_result(payment, result, now=act.now)
    elif not (payment.is_called_off and result.state in {"action_required", "authorized"}):
        _store_answer(purchase, payment, result, act)
    # Otherwise another process is voiding it: it stays unresolved until it is voided.
    payment.reservation = purchase.reservation
    return purchase.reservation, payment


def _store_answer(purchase: Purchase, payment: Payment, result: GatewayPayment, act: Act) -> None:
    """Resolve a payment with the gateway's answer, or let it wait for the customer's bank."""
    was_waiting, has_failed = payment.action_until is not None, False
    if result.state == "action_required":
        _wait_for_customer(purchase.reservation, payment)
    else:
        apply_gateway_result(payment, result, counts=purchase.pays(act.now), now=act.now)
        has_failed = payment.state == PaymentState.DECLINED or was_not_confirmed(payment, act.now)
        if payment.state in FUNDED_STATES:
            purchase.conclude(payment, act)
        else:
            purchase.abandon(payment, act)
    # Last, because the counter is locked after all other rows (locks.py).
    if purchase.is_attempt(payment):
        pk = purchase.reservation.pk if payment.is_by_link else None
        key = get_payer_key(purchase.reservation.user_id, pk)
        if not was_waiting and not has_failed:
            # Also once it waits for the bank: such payments would keep good cards from being tried.
            CARD_DECLINED.give_back(key)
        elif was_waiting and has_failed:
            CARD_DECLINED.add_failure(key, now=act.now)


def _wait_for_customer(reservation: Reservation, payment: Payment) -> None:
    """Let the payment wait until the customer has confirmed it at the bank (B21.3).

    The time is counted from its beginning, and ends with the start of the meeting, unless the
    payment is for a change of a meeting that has begun.
    """
    if payment.action_until is None:
        latest = lifecycle.get_action_deadline(payment)
        if payment.purpose == PaymentPurpose.BOOKING:
            # After that it could not be booked any more.
            latest = min(latest, reservation.payable_until)
        elif reservation.start > payment.created_at:
            latest = min(latest, reservation.start)
        payment.action_until = payment.lease_until = latest
        payment.save(update_fields=["action_until", "lease_until"])


def was_not_confirmed(payment: Payment, now: dt.datetime) -> bool:
    """Return whether the payment was voided because the customer has not confirmed it in time."""
    is_voided = payment.state == PaymentState.VOIDED
    return is_voided and payment.action_until is not None and payment.action_until <= now


def create_payment(
    reservation: Reservation,
    *,
    amount: Decimal,
    purpose: PaymentPurpose = PaymentPurpose.BOOKING,
    center_id: int,
    is_by_link: bool,
    refusal: str,
    now: dt.datetime,
) -> Payment:
    """Create the payment of a claim, in its transaction, with a lease for this request.

    Raises ReservationNotOpen with the `refusal` if another payment for the purpose is open
    (`payment_one_open_for_booking`, `payment_one_open_for_change`).
    """
    gateway = gateways.get_current_gateway()
    try:
        return Payment.objects.create(
            reservation=reservation,
            reservation_uid=reservation.uid,
            cash_center_id=center_id,
            purpose=purpose,
            is_by_link=is_by_link,
            amount=amount,
            currency=reservation.currency,
            gateway=gateway.name,
            is_live=gateway.is_live,
            lease_until=now + dt.timedelta(seconds=settings.PAYMENT_LEASE_SECONDS),
            created_at=now,
        )
    except IntegrityError as error:
        raise ReservationNotOpen(refusal) from error


# --- Payments that are not resolved ---------------------------------------------------------------


def resolve_payments(
    reservation_id: int, *, user: User | None, calls_off: bool = False, now: dt.datetime
) -> None:
    """Resolve the payments of the reservation that no worker is at.

    Their lease has expired, or they wait for the customer (B21.3). If `user` is given, the
    reservation has to be this customer's. `calls_off`: only the payment of a draft is resolved, and
    voided if it waits. A payment that cannot be resolved is not changed, and `reconcile_payments`
    reports it.
    """
    rows = Payment.objects.resolvable(now).filter(reservation=reservation_id)
    if user is not None:
        rows = rows.filter(reservation__user=user)
    if calls_off:
        rows = rows.filter(purpose=PaymentPurpose.BOOKING)
    for payment in rows.select_related("reservation"):
        try:
            resolve_payment(payment, calls_off=calls_off, now=now)
        except GatewayUnavailable:
            logger.warning("Payment %s is unresolved: the gateway does not answer.", payment.key)
        except (GatewayRefused, InvalidPaymentTransition):
            logger.exception("Payment %s cannot be resolved.", payment.key)


def resolve_payment(payment: Payment, *, calls_off: bool = False, now: dt.datetime) -> Payment:
    """Fetch the status of an unresolved payment from the gateway, and take the steps 3 and 4.

    A payment that still waits for its customer is not changed.
    """
    result = lifecycle.fetch_gateway_status(payment, calls_off=calls_off, now=now)
    return _finish(payment, result, now=now)


def _finish(payment: Payment, result: GatewayPayment, *, now: dt.datetime) -> Payment:
    if result.state == "action_required" and payment.action_until is not None:
        # It still waits for its customer, and there is no need to lock the room.
        return payment
    _, payment = conclude(payment, result, Act(None, now))
    payment = lifecycle.record_reported_refunds(payment, result, now=now)
    _try_settle(payment, now=now)
    return payment


@receiver(customer_acted)
def resolve_confirmed_payment(payment: Payment, now: dt.datetime, **kwargs: object) -> None:
    """Conclude the purchase as soon as the gateway reports that the customer has acted."""
    try:
        resolve_payment(payment, now=now)
    except InvalidPaymentTransition:
        logger.exception("Payment %s cannot be resolved.", payment.key)


@dataclass(frozen=True, slots=True)
class PaymentAction:
    """How to confirm a payment: by the gateway's SDK, or on the page of the bank at `url`.

    The secrets come from the gateway for each response, and are stored nowhere.
    """

    gateway: str
    publishable_key: str
    client_secret: str = field(repr=False)
    url: str = field(repr=False)
    expires_at: dt.datetime


def get_payment_action(
    reservation_id: int, *, user: User, now: dt.datetime
) -> tuple[str, PaymentAction | None]:
    """Return the status of the user's reservation, and what the customer has to do at the bank.

    A payment that the customer has confirmed or refused, or not confirmed in time, is resolved.

    Raises NotFound, or GatewayUnavailable if the gateway does not answer.
    """
    reservation = get_own_reservation(reservation_id, user)
    # Also of a change of the booking (B27). Nobody pays for what has ended.
    is_open = reservation.status == Status.PROCESSING or reservation.is_confirmed_or_completed
    waiting = Payment.objects.waiting().filter(reservation=reservation.pk)
    payment = waiting.first() if is_open else None
    if payment is None or payment.action_until is None:
        return reservation.status, None
    result = lifecycle.fetch_gateway_status(payment, now=now)
    _finish(payment, result, now=now)
    if result.action is None:
        return get_own_reservation(reservation_id, user).status, None
    return reservation.status, PaymentAction(
        gateway=payment.gateway,
        publishable_key=gateways.get_gateway(payment.gateway).publishable_key,
        client_secret=result.action.client_secret,
        url=result.action.url,
        expires_at=payment.action_until,
    )


# --- What is due at the gateway -------------------------------------------------------------------


def settle(reservation_id: int, *, now: dt.datetime) -> None:
    """Execute the captures, voids and refunds that are due for the reservation.

    Call it after the transaction that makes something due. It may be repeated; what fails stays due
    until `reconcile_payments` tries again and reports it.
    """
    for payment in open_payments(reservation=reservation_id, now=now):
        _try_settle(payment, now=now)


@compiled_query(keep_plan=True)
def open_payments() -> QuerySet[Payment]:
    rows = Payment.objects.open().filter(reservation=int_param("reservation"))
    # The request that is at work on a payment settles it.
    rows = rows.exclude(
        state=PaymentState.STARTED, action_until=None, lease_until__gt=datetime_param("now")
    )
    return rows.select_related("reservation").order_by("-pk")


def _try_settle(payment: Payment, *, now: dt.datetime) -> None:
    try:
        _settle(payment, now=now)
    except GatewayUnavailable:
        logger.warning("Payment %s stays due: the gateway does not answer.", payment.key)
    except Exception:
        # What was committed is valid in any case.
        logger.exception("Payment %s: what is due could not be done.", payment.key)


@receiver(refund_became_due)
def settle_payment(payment: Payment, *, now: dt.datetime, **_: object) -> Payment:
    """Read the payment again and execute what is due. Raises the errors of the gateway."""
    return _settle(Payment.objects.select_related("reservation").get(pk=payment.pk), now=now)


def _settle(payment: Payment, *, now: dt.datetime) -> Payment:
    """Capture or void an authorized payment, and execute the refunds that are due.

    A payment that is called off is voided. One that was captured and does not count is refunded.
    """
    if payment.state == PaymentState.STARTED and payment.is_called_off:
        return resolve_payment(payment, now=now)
    if payment.state == PaymentState.AUTHORIZED:
        if payment.counts and payment.reservation.status in CAPTURE_DUE_STATUSES:
            # Only a captured payment has refunds, so none can be due here.
            return lifecycle.capture_payment(payment, now=now)
        if not payment.counts:
            payment = lifecycle.void_payment(payment, now=now)
    if payment.state == PaymentState.CAPTURED and not payment.counts:
        _create_full_refund(payment, now=now)
    refusals = []
    for refund in pending_refunds(payment=payment.pk):
        try:
            refunds.execute_refund(refund, now=now)
        except GatewayRefused as error:
            # The others may be possible.
            refusals.append(error)
    if refusals:
        raise refusals[0]
    return payment


@compiled_query(keep_plan=True)
def pending_refunds() -> QuerySet[Refund]:
    rows = Refund.objects.due().filter(payment=int_param("payment"))
    return rows.select_related("payment").order_by("pk")


@in_transaction
def _create_full_refund(payment: Payment, *, now: dt.datetime) -> None:
    """Create a refund of the whole payment, unless there is one already."""
    payment = lock_payment(payment.pk)
    amount = refunds.get_refundable_amount(payment)
    if amount:
        refunds.create_refund(payment, amount=amount, reason="Taken for no booking", now=now)
        post(payment.reservation_id, EventKind.PROMISED, cause=f"payment {payment.pk}", now=now)


def get_booked_payments(reservation: Reservation) -> list[Payment]:
    """Return the payments that count for it, the latest first: authorized or captured ones."""
    return _find_booked(reservation.payments.all())


def lock_booked_payments(reservation: Reservation) -> list[Payment]:
    """Return the same payments, locked: no event changes them or their refunds meanwhile.

    The caller is in a transaction and holds the lock of the reservation.
    """
    return _find_booked(reservation.payments.select_for_update())


def _find_booked(payments: QuerySet[Payment]) -> list[Payment]:
    return list(payments.filter(counts=True, state__in=sorted(FUNDED_STATES)).order_by("-pk"))


def release(payments: Iterable[Payment]) -> None:
    """Store that locked payments pay for nothing: `settle` voids them, or refunds them."""
    for payment in payments:
        payment.counts = False
        payment.save(update_fields=["counts"])
