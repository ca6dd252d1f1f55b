"""The actions that one command takes: approve, cancel, check in, adjust the price, and so on."""

import datetime as dt
from typing import Any

from accounts.models import OutboxMessage
from payments.models import Payment
from reservations.admin import formatting
from reservations.admin.actions.base import (
    Action,
    ActionPreview,
    ActionRequest,
    compare_bills,
    describe_due_refund,
    describe_email,
    format_refund,
)
from reservations.admin.actions.forms import (
    CancellationForm,
    HoldExtensionForm,
    MessageForm,
    PriceAdjustmentForm,
)
from reservations.booking import (
    approval,
    cancellation,
    charging,
    check_in,
    drafts,
    price_adjustments,
    reminders,
)
from reservations.booking.amendments import ADJUST_PRICE
from reservations.booking.cancellation import Cancellation
from reservations.booking.commands import Preview
from reservations.booking.price_adjustments import Adjustment
from reservations.models import Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications import emails
from reservations.notifications.confirmation import describe_card, describe_refund_target
from roombook import money
from roombook.deliveries import DeliveryState


class ApproveAction(Action):
    name, label, icon = "approve", "Approve", "check_circle"
    title, confirm_label = "Approve this request?", "Approve"
    is_primary = True
    command = approval.confirm_or_expire

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        reservation, status = request.reservation, Status(would.result.status)
        preview = ActionPreview(facts=[("New status", status.label)])
        payment = _get_authorized_payment(reservation)
        if payment is not None:
            charge = f"{money.format_amount(payment.amount)} from {describe_card(payment)}"
            if payment.is_manual:
                charge = "Nothing, it is paid already"
            preview.facts.append(("Charge", charge))
            if payment.authorized_until is not None:
                until = formatting.format_datetime(reservation, payment.authorized_until)
                preview.facts.append(("Authorized until", until))
        elif status == Status.EXPIRED:
            preview.problems.append(
                "The payment for this request is no longer authorized. If you approve the request,"
                " it expires."
            )
        else:
            preview.facts.append(("Charge", "Nothing, it is free"))
        preview.facts.append(describe_email(reservation))
        return preview

    def execute(self, request: ActionRequest) -> str:
        approval.approve(request.act, request.reservation.pk)
        return "Approved."


class DeclineAction(Action):
    name, label, icon = "decline", "Decline", "block"
    title, confirm_label = "Decline this request?", "Decline"
    is_dangerous = True
    command, done = approval.decline, "Declined."
    form_class = MessageForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {"message": request.data.get("message", "")}

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        reservation = request.reservation
        payment = _get_authorized_payment(reservation)
        released = "Nothing, no payment is authorized"
        if payment is not None:
            amount = money.format_amount(payment.amount)
            released = f"{amount} on {describe_card(payment)}; nothing was charged"
            if payment.is_manual:
                released = f"{amount} is {describe_refund_target([payment])}, by you"
        return ActionPreview(
            facts=[
                ("New status", Status(would.result.status).label),
                ("Released", released),
                *_describe_returned_benefits(reservation),
                describe_email(reservation),
            ],
            email=would.email,
        )


class CancelAction(Action):
    name, label, icon = "cancel", "Cancel", "cancel"
    title, confirm_label = "Cancel this reservation?", "Cancel the reservation"
    is_dangerous = True
    command = cancellation.cancel
    form_class = CancellationForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = not reservation.is_new and reservation.start <= now
        is_waiting = reservation.waiting_payment is not None
        is_open = can_transition(reservation.status, Status.CANCELLED) or is_waiting
        return is_open and not has_begun

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {
            "decision": request.data.get("decision"),
            "message": request.data.get("message", ""),
            "expected_refund": request.expected_amount,
        }

    def describe(self, request: ActionRequest, would: Preview[Cancellation]) -> ActionPreview:
        reservation = request.reservation
        terms = would.result.terms
        preview = ActionPreview(
            facts=[
                ("New status", Status.CANCELLED.label),
                ("Refund", money.format_amount(terms.refund)),
                ("Fee", money.format_amount(terms.fee)),
            ],
            email=would.email,
            expected_amount=terms.refund,
        )
        if terms.decision is None:
            preview.notes.append(would.result.forecast)
        else:
            preview.facts.append(("By the policy", money.format_amount(terms.policy_refund)))
        if reservation.booked_at is not None:
            free_until = reservation.free_cancellation_until
            preview.facts += [
                ("Free until", formatting.format_datetime(reservation, free_until)),
                *_describe_returned_benefits(reservation),
                describe_email(reservation),
            ]
        return preview

    def report(self, result: Cancellation) -> str:
        return result.message


class AttendanceAction(Action):
    """Whether the customer has come. Nobody gets an e-mail or money."""

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        row = would.result
        arrived = formatting.format_datetime(row, row.checked_in_at) if row.checked_in_at else "No"
        return ActionPreview(
            facts=[
                ("New status", Status(row.status).label),
                ("Checked in", arrived),
                ("Refund", "None"),
                ("E-mail to", "Nobody"),
            ]
        )


class MarkNoShowAction(AttendanceAction):
    name, label, icon = "no-show", "No-show", "person_off"
    title, confirm_label = "Mark as no-show?", "Mark as no-show"
    is_dangerous = True
    command, done = approval.mark_no_show, "Marked as no-show."

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        is_open = can_transition(reservation.status, Status.NO_SHOW)
        return is_open and reservation.start <= now and not reservation.is_checked_in

    def is_immediate_for(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        # Until the end it releases the room: once somebody has booked it, nothing undoes that.
        return reservation.end <= now

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        preview = super().describe(request, would)
        if request.reservation.end > request.act.now:
            preview.facts.append(("Room", "Released at once, so that others can book it"))
        return preview


class UndoNoShowAction(AttendanceAction):
    name, label, icon = "undo-no-show", "Undo no-show", "person"
    title, confirm_label = "Did the customer come after all?", "Undo the no-show"
    is_immediate = True
    command, done = approval.undo_no_show, "The no-show is undone."

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.NO_SHOW


class CheckInAction(AttendanceAction):
    name, label, icon = "check-in", "Check in", "how_to_reg"
    title, confirm_label = "Has the customer arrived?", "Check in"
    is_primary = True
    is_immediate = True
    command, done = check_in.check_in, "Checked in."

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return check_in.can_check_in(reservation, now=now)


class UndoCheckInAction(AttendanceAction):
    name, label, icon = "undo-check-in", "Undo check-in", "undo"
    title, confirm_label = "Has the customer not arrived?", "Undo the check-in"
    is_immediate = True
    command, done = check_in.undo_check_in, "The check-in is undone."

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_checked_in


class AdjustPriceAction(Action):
    name, label, icon = "adjust", "Adjust price", "price_change"
    title, confirm_label = "Adjust the price", "Adjust the price"
    permission = ADJUST_PRICE
    command = price_adjustments.adjust_price
    form_class = PriceAdjustmentForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return price_adjustments.can_adjust(reservation)

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {
            **request.data,
            "expected_version": request.expected_version,
            "expected_total": request.expected_amount,
        }

    def describe(self, request: ActionRequest, would: Preview[Adjustment]) -> ActionPreview:
        reservation, result = request.reservation, would.result
        preview = ActionPreview(
            bill=compare_bills(result),
            expected_amount=result.new_total,
            expected_version=reservation.version,
        )
        if not reservation.is_new:
            preview.facts.append(("Refund", format_refund(result.refund)))
            preview.facts.append(describe_email(reservation, "with the bill"))
        return preview

    def report(self, result: Adjustment) -> str:
        total = money.format_amount(result.new_total)
        return f"The new price is {total}.{describe_due_refund(result.refund)}"


class ExtendHoldAction(Action):
    name, label, icon = "hold", "Extend hold", "lock_clock"
    title, confirm_label = "Extend the hold of the room", "Extend the hold"
    command = drafts.extend_hold
    form_class = HoldExtensionForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return drafts.can_extend_hold(reservation, now=now)

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {"until": request.data["until"]}

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        reservation = request.reservation
        held_until = "Not held, the hold has expired"
        if reservation.is_held_at(request.act.now):
            held_until = _format_hold(reservation)
        facts = [("Held until", held_until), ("Then held until", _format_hold(would.result))]
        return ActionPreview(facts=facts)

    def report(self, result: Reservation) -> str:
        return f"Held until {_format_hold(result)}."


class ResendEmailAction(Action):
    name, label, icon = "resend", "Resend e-mail", "forward_to_inbox"
    title, confirm_label = "Resend the last e-mail", "Resend"
    command = reminders.resend_last_email

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return emails.get_last_email(reservation.pk) is not None

    def describe(self, request: ActionRequest, would: Preview[OutboxMessage]) -> ActionPreview:
        reservation, message = request.reservation, would.result
        last = emails.get_last_email(reservation.pk) or message
        preview = ActionPreview(
            facts=[
                ("E-mail", message.kind),
                ("Subject", message.subject),
                ("E-mail to", message.to),
                ("State", DeliveryState(last.state).label),
            ]
        )
        if reservation.has_former_address:
            preview.notes.append("The address has changed: the customer gets the new details.")
        elif message.calendar:
            preview.notes.append(
                "The attached calendar file is the same: a calendar that has the meeting already"
                " does not change."
            )
        return preview

    def report(self, result: OutboxMessage) -> str:
        return f"“{result.subject}” will be sent within a minute."


def _format_hold(reservation: Reservation) -> str:
    assert reservation.hold_until is not None  # because it is held
    return formatting.format_datetime(reservation, reservation.hold_until)


def _get_authorized_payment(reservation: Reservation) -> Payment | None:
    return next(iter(charging.get_booked_payments(reservation)), None)


def _describe_returned_benefits(reservation: Reservation) -> list[tuple[str, str]]:
    """The promo code use and the included hours that the customer gets back."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        facts.append(("Promo code", f"The use of {reservation.promo_code} is returned"))
    hours = sum(use.hours for use in reservation.allowance_uses.all())
    if hours:
        facts.append(("Included hours", f"{hours} h are returned"))
    return facts
