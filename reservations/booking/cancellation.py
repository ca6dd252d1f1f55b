"""Cancels reservations, and calculates what comes back by the terms that they keep (B15.4).

Staff with the permission can choose another refund, with a reason: it is stored as a RefundOverride
and in the history (B18).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import F, Q, Sum

from accounts import roles
from accounts.act import Act
from accounts.models import User
from centers import rates
from centers.models import Center
from payments import refunds
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment, PaymentPurpose, PaymentState, Refund
from reservations.booking import charging
from reservations.booking.amendments import call_off_changes, require_expected
from reservations.booking.charging import get_booked_payments, lock_booked_payments
from reservations.booking.commands import PAYMENT_UNDER_WAY, Obstacle, Unsettled, command_after
from reservations.booking.locks import lock_reservation
from reservations.models import RefundOverride, Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications import emails
from reservations.notifications.confirmation import describe_refund
from reservations.notifications.formatting import format_short_time
from reservations.pricing import bill
from reservations.pricing.allowances import planned_hours
from reservations.pricing.terms import ALL, get_terms, round_hours, split_payment
from roombook import money
from roombook.errors import InvalidRequest, ReservationNotOpen

if TYPE_CHECKING:
    from reservations.models.reservation import TransitionColumns

OVERRIDE_REFUND = "reservations.override_refund"
NOTHING_CHARGED = "nothing was charged."
NOTHING_REFUNDED = "nothing is refunded."
ALREADY_REFUNDED = "what was charged has been paid back already."
REFUND_RETURNED = (
    "what was charged was refunded, but the bank returned it. We will refund it again."
)


@dataclass(frozen=True, slots=True)
class RefundDecision:
    """The refund that a member of staff has chosen instead of the policy's, and the reason.

    The amount None is everything that is left of what was charged, with all included hours and the
    promo code.
    """

    amount: Decimal | None
    reason: str


@dataclass(frozen=True, slots=True)
class CancellationOutcome:
    """The refund and the fee of a cancellation, and a sentence that describes them.

    `left` is what remains of the charged amount: staff may refund at most that. `decision` is the
    decision of staff that replaces the policy, if any, and `policy_refund` what the policy gives.
    `share` is the part of the included hours that comes back; the promo code does if it is 1.
    `next_step` says until when the refund stays the same, and what comes then.
    """

    refund: Decimal
    fee: Decimal
    sentence: str
    left: Decimal = money.ZERO
    decision: RefundDecision | None = None
    policy_refund: Decimal = money.ZERO
    share: Decimal = Decimal(1)
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What became of a reservation, or would; `is_repeated` if it was cancelled before."""

    reservation: Reservation
    outcome: CancellationOutcome
    is_repeated: bool = False

    @property
    def refund(self) -> Decimal:
        return self.outcome.refund

    @property
    def message(self) -> str:
        return f"The reservation is cancelled: {self.outcome.sentence}"

    @property
    def forecast(self) -> str:
        """The message of a preview."""
        if self.is_repeated:
            return self.message
        return f"If you cancel now: {self.outcome.sentence}{self.outcome.next_step}"


def _call_payment_off(act: Act, reservation_id: int) -> None:
    """Void the payment of a draft that waits. That of a change is called off by `cancel` itself."""
    charging.resolve_payments(reservation_id, user=act.customer, calls_off=True, now=act.now)


@command_after(_call_payment_off, without_capture={"can_be_captured": False})
def cancel(
    act: Act,
    reservation_id: int,
    *,
    decision: RefundDecision | None = None,
    message: str = "",
    expected_refund: Decimal | None = None,
    can_be_captured: bool = True,
) -> tuple[Cancellation, Obstacle]:
    """Cancel a reservation and refund it by its policy. A second call returns the same result.

    With a `decision`, staff refund another amount than the policy's, and their `message` is added
    to the e-mail. `expected_refund` is the refund in the preview: if it has changed since then,
    nothing is done.

    If the gateway refuses to charge an authorized amount, that is voided, and the refund is at most
    what was charged otherwise. A payment that the customer has not confirmed at the bank is voided
    first.

    Raises:
        ReservationNotOpen: it is too late to cancel.
        InvalidRequest: the decision is not allowed.
        ServiceUnavailable: the payment is not resolved yet, and the gateway does not answer.
    """
    now = act.now
    reservation = lock_reservation(reservation_id, owner=act.customer)
    if reservation.status == Status.CANCELLED:
        return _describe_cancelled(reservation), None
    if reservation.waiting_payment is not None:
        outcome = _calculate_outcome(reservation, (), now=now)
        return Cancellation(reservation, outcome), Unsettled([reservation.waiting_payment])
    _require_cancellable(reservation, now)
    payments = lock_booked_payments(reservation)
    captured = [each for each in payments if each.state == PaymentState.CAPTURED]
    # Another process can have captured a payment although this one was refused.
    due = [each for each in payments if _is_capture_due(reservation, each)]
    if due and not can_be_captured:
        # They are voided after this transaction, so there is less to be refunded than expected.
        left = _calculate_outcome(reservation, captured, now=now).left
        if decision is not None and decision.amount is not None:
            decision = replace(decision, amount=min(decision.amount, left))
        outcome = _decide_outcome(act, reservation, captured, decision)
    else:
        outcome = _decide_outcome(act, reservation, payments, decision)
        require_expected("refund", outcome.refund, expected=expected_refund)
    # Another process can have captured the fee since `now`. What is captured later is no fee.
    captured_times = [each.captured_at for each in captured if each.captured_at is not None]
    at = max([now, *captured_times])
    _end(reservation, outcome, act, message=message, at=at)
    result = Cancellation(reservation, outcome)
    if due and can_be_captured:
        return result, Unsettled(due)
    refunds.create_refunds(captured, amount=outcome.refund, reason="Cancelled", now=at)
    # Whatever comes in for the others is returned.
    charging.release(each for each in payments if each not in captured)
    call_off_changes(reservation, now=now)
    post(reservation.pk, EventKind.CANCELLED, by=act.user, fee=outcome.fee, now=now)
    return result, None


def _end(
    reservation: Reservation,
    outcome: CancellationOutcome,
    act: Act,
    *,
    message: str,
    at: dt.datetime,
) -> None:
    """Store the cancellation, return the benefits, and write to the customer of a booking."""
    # A draft that never was a booking is in no calendar, and its customer gets no e-mail.
    was_booked = reservation.booked_at is not None
    columns: TransitionColumns = {"cancelled_at": at}
    if was_booked:
        columns |= reservation.advance_calendar(act.now)
    changes: dict[str, tuple[object, object]] = {"refund_promised": (None, outcome.refund)}
    if outcome.decision is not None and act.user is not None:
        reason = outcome.decision.reason
        RefundOverride.objects.create(
            reservation=reservation,
            policy_refund=outcome.policy_refund,
            refund=outcome.refund,
            reason=reason,
            by=act.user,
            at=act.now,
        )
        given = f"{money.format_amount(outcome.refund)}: {reason}"
        changes["refund_by_decision"] = (money.format_amount(outcome.policy_refund), given)
    reservation.transition_to(Status.CANCELLED, act, changes=changes, **columns)
    bill.return_benefits(reservation, share=outcome.share, now=act.now)
    if was_booked:
        emails.send_cancelled(
            reservation,
            refund=outcome.refund,
            fee=outcome.fee,
            refund_text=outcome.sentence,
            message=message,
            now=act.now,
        )


def get_outcome(reservation: Reservation, *, now: dt.datetime) -> CancellationOutcome:
    """Return the refund and the fee of cancelling now by the policy."""
    return _calculate_outcome(reservation, get_booked_payments(reservation), now=now)


def _calculate_outcome(
    reservation: Reservation, payments: Sequence[Payment], *, now: dt.datetime
) -> CancellationOutcome:
    """Return what the terms of the booking give now. A request or a draft costs nothing."""
    terms = get_terms(reservation)
    is_booked = reservation.status == Status.CONFIRMED
    percent = terms.get_percent(reservation, now) if is_booked else ALL
    share = Decimal(1) if terms.returns_benefits else Decimal(percent) / ALL
    outcome = give_back(reservation, payments, percent, share=share)
    if is_booked and terms.name and outcome.left:
        return replace(outcome, next_step=_describe_next_step(reservation, outcome, now=now))
    return outcome


def give_back(
    reservation: Reservation, payments: Sequence[Payment], percent: int, *, share: Decimal
) -> CancellationOutcome:
    """Return the refund and the fee if this percentage of the price comes back.

    `share` is the part of the included hours that does.
    """
    parts = [(each, _get_paid_amount(reservation, each)) for each in payments]
    paid = sum((part for _, part in parts), money.ZERO)
    if not paid:
        captured = _get_captured_payments(reservation)
        sentence = _describe_no_refund(captured) + _describe_hours(reservation, share)
        return CancellationOutcome(money.ZERO, money.ZERO, sentence, share=share)
    refund, fee = split_payment(reservation.total_cost, paid, percent)
    sentence = NOTHING_REFUNDED if percent else _describe_too_late(reservation)
    if refund:
        sentence = describe_refund(
            [each for each, _ in refunds.split_refund(payments, refund)], refund
        )
    sentence += _describe_hours(reservation, share)
    return CancellationOutcome(refund, fee, sentence, left=paid, share=share)


def _decide_outcome(
    act: Act,
    reservation: Reservation,
    payments: Sequence[Payment],
    decision: RefundDecision | None,
) -> CancellationOutcome:
    """Return the terms of the policy, or those that staff have decided. Raises InvalidRequest."""
    outcome = _calculate_outcome(reservation, payments, now=act.now)
    if decision is None:
        return outcome
    is_all = decision.amount is None
    refund = outcome.left if decision.amount is None else decision.amount
    if refund == outcome.refund and (outcome.share == 1 or not is_all):
        return outcome
    if refusal := get_override_refusal(act.user, reservation.room.center):
        raise InvalidRequest({"refund": refusal})
    _validate_refund(refund, left=outcome.left, reason=decision.reason)
    sentence = NOTHING_REFUNDED
    if not outcome.left:
        sentence = _describe_no_refund(_get_captured_payments(reservation))
    elif refund:
        parts = refunds.split_refund(payments, refund)
        sentence = describe_refund([each for each, _ in parts], refund)
    # A refused refund of a reduction is left too, but it stays due, and is no part of the fee.
    price = min(outcome.left, reservation.total_cost)
    fee = max(price - refund, money.ZERO)
    share = Decimal(1) if is_all else outcome.share
    if price and not is_all and not get_terms(reservation).returns_benefits:
        share = min(refund / price, Decimal(1))
    return replace(
        outcome,
        refund=refund,
        fee=fee,
        sentence=sentence + _describe_hours(reservation, share),
        decision=decision,
        policy_refund=outcome.refund,
        share=share,
        next_step="",
    )


def _get_paid_amount(reservation: Reservation, payment: Payment) -> Decimal:
    """Return the captured and not refunded amount; for a booking, a due capture counts too."""
    if payment.state == PaymentState.CAPTURED or _is_capture_due(reservation, payment):
        return refunds.get_refundable_amount(payment)
    return money.ZERO


def _is_capture_due(reservation: Reservation, payment: Payment) -> bool:
    return reservation.status == Status.CONFIRMED and payment.state == PaymentState.AUTHORIZED


def _require_cancellable(reservation: Reservation, now: dt.datetime) -> None:
    if reservation.status == Status.PROCESSING:
        raise ReservationNotOpen(PAYMENT_UNDER_WAY)
    if not can_transition(reservation.status, Status.CANCELLED):
        raise ReservationNotOpen
    if reservation.status != Status.NEW and reservation.start <= now:
        raise ReservationNotOpen("The meeting has begun; it can no longer be cancelled.")


# --- Other refunds than the policy's --------------------------------------------------------------


def get_override_refusal(user: User | None, center: Center) -> str:
    """Return why the user cannot refund another amount than the policy's; empty if they can."""
    if user is not None and roles.has_permission(user, OVERRIDE_REFUND, center.pk):
        return ""
    return f"Only who may override refunds at {center.name} can refund another amount."


def _validate_refund(refund: Decimal, *, left: Decimal, reason: str) -> None:
    """Raise InvalidRequest unless this amount of what is left can be refunded."""
    if not 0 <= refund <= left:
        raise InvalidRequest(
            {"refund": f"Between 0 and {money.format_amount(left)} can be refunded."}
        )
    if money.round_amount(refund) != refund:
        raise InvalidRequest({"refund": "The amount has too many decimal places."})
    if not reason.strip():
        raise InvalidRequest({"reason": "A refund that the policy does not give needs a reason."})


# --- Sentences -----------------------------------------------------------------------------------


def _describe_cancelled(reservation: Reservation) -> Cancellation:
    """Return the result of the earlier cancellation, from the stored data."""
    payments = _get_captured_payments(reservation)
    counting = [each for each in payments if each.counts]
    # The refunds of the cancellation have its time, and their retries a later one.
    promised = Refund.objects.filter(
        payment__in=counting, again=None, created_at=F("payment__reservation__cancelled_at")
    )
    refund = promised.aggregate(sum=Sum("amount"))["sum"] or money.ZERO
    if refund:
        sentence = describe_refund(refunds.find_refunded(counting, refund), refund)
    elif any(map(refunds.get_refundable_amount, counting)):
        sentence = NOTHING_REFUNDED
        at = reservation.cancelled_at
        if at and not get_terms(reservation).get_percent(reservation, at):
            sentence = _describe_too_late(reservation)
    else:
        sentence = _describe_no_refund(payments)
    outcome = CancellationOutcome(refund, money.ZERO, sentence + _describe_hours(reservation))
    return Cancellation(reservation, outcome, is_repeated=True)


def _get_captured_payments(reservation: Reservation) -> list[Payment]:
    """Return the payments for it that were captured, the latest first.

    Also those of attempts that failed, which do not count, but not those of changes not made.
    """
    rows = reservation.payments.filter(Q(counts=True) | Q(purpose=PaymentPurpose.BOOKING))
    return list(rows.filter(captured_at__isnull=False).order_by("-pk"))


def _describe_no_refund(payments: Sequence[Payment]) -> str:
    """Say why nothing is refunded; the payments are those that were captured."""
    if not payments:
        return NOTHING_CHARGED
    has_returned_refund = any(map(refunds.get_refundable_amount, payments))
    return REFUND_RETURNED if has_returned_refund else ALREADY_REFUNDED


def _describe_too_late(reservation: Reservation) -> str:
    steps = get_terms(reservation).steps
    if not steps:
        return NOTHING_REFUNDED
    return f"it is less than {steps[-1].hours} hours before its start, so nothing is refunded."


def _describe_hours(reservation: Reservation, share: Decimal | None = None) -> str:
    """Say how many included hours come back, or without a share have come back, if not all do."""
    planned = [] if share == 1 else [*planned_hours(reservation=reservation.pk)]
    used = sum(hours for _, hours in planned)
    if share is None:
        entered = reservation.allowance_entries.aggregate(sum=Sum("hours"))["sum"]
        returned = used + Decimal(entered or 0)
    else:
        returned = sum((round_hours(hours * share) for _, hours in planned), money.ZERO)
    if returned >= used:
        return ""
    return f" {rates.format_quantity(returned)} of {used} included hours come back."


def _describe_next_step(
    reservation: Reservation, outcome: CancellationOutcome, *, now: dt.datetime
) -> str:
    current, *later = get_terms(reservation).list_periods_from(reservation, now)
    if current.until is None:
        return ""
    until = format_short_time(reservation.room.center, current.until)
    refund, _ = split_payment(reservation.total_cost, outcome.left, later[0].percent)
    then = money.format_amount(refund) if refund else "nothing"
    return f" {money.format_amount(outcome.refund)} until {until}, then {then}."
