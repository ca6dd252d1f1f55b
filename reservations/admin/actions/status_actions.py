"""Actions that change the status of a reservation: approve, decline, cancel, check in, no-show."""

import datetime as dt
from typing import Any

from payments.models import Payment
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.admin.actions.forms import CancellationForm, MessageForm
from reservations.booking import (
    approval,
    cancellation,
    check_in,
    payment_recovery,
)
from reservations.booking.commands import Command
from reservations.models import Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications.confirmation import describe_card, describe_refund_target
from roombook import money


class ApproveAction(Action):
    name, label, icon = "approve", "Approve", "check_circle"
    title, confirm_label = "Approve this request?", "Approve"
    is_primary = True

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation = request.reservation
        answered = approval.confirm_or_expire.preview(request.act, reservation.pk).result
        preview = ActionPreview(facts=[("New status", Status(answered.status).label)])
        payment = _get_authorized_payment(reservation)
        if payment is not None:
            charge = f"{money.format_amount(payment.amount)} from {describe_card(payment)}"
            if payment.is_manual:
                charge = "Nothing, it is paid already"
            preview.facts.append(("Charge", charge))
            if payment.authorized_until is not None:
                until = formatting.format_datetime(reservation, payment.authorized_until)
                preview.facts.append(("Authorized until", until))
        elif answered.status == Status.EXPIRED:
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
    form_class = MessageForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation = request.reservation
        payment = _get_authorized_payment(reservation)
        released = "Nothing, no payment is authorized"
        if payment is not None:
            amount = money.format_amount(payment.amount)
            released = f"{amount} on {describe_card(payment)}; nothing was charged"
            if payment.is_manual:
                released = f"{amount} is {describe_refund_target([payment])}, by you"
        message = request.data.get("message", "")
        preview = approval.decline.preview(request.act, reservation.pk, message=message)
        return ActionPreview(
            facts=[
                ("New status", Status(preview.result.status).label),
                ("Released", released),
                *_describe_returned_benefits(reservation),
                describe_email(reservation),
            ],
            email=preview.email,
        )

    def execute(self, request: ActionRequest) -> str:
        message = request.data.get("message", "")
        approval.decline(request.act, request.reservation.pk, message=message)
        return "Declined."


class CancelAction(Action):
    name, label, icon = "cancel", "Cancel", "cancel"
    title, confirm_label = "Cancel this reservation?", "Cancel the reservation"
    is_dangerous = True
    form_class = CancellationForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = not reservation.is_new and reservation.start <= now
        is_waiting = reservation.waiting_payment is not None
        is_open = can_transition(reservation.status, Status.CANCELLED) or is_waiting
        return is_open and not has_begun

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation = request.reservation
        would = cancellation.cancel.preview(
            request.act, reservation.pk, **self.get_options(request)
        )
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

    def execute(self, request: ActionRequest) -> str:
        return cancellation.cancel(
            request.act,
            request.reservation.pk,
            expected_refund=request.expected_amount,
            **self.get_options(request),
        ).message

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        data = request.data
        return {"decision": data.get("decision"), "message": data.get("message", "")}


class MarkNoShowAction(Action):
    name, label, icon = "no-show", "No-show", "person_off"
    title, confirm_label = "Mark as no-show?", "Mark as no-show"
    is_dangerous = True

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        is_open = can_transition(reservation.status, Status.NO_SHOW)
        return is_open and reservation.start <= now and not reservation.is_checked_in

    def is_immediate_for(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        # Until the end it releases the room: once somebody has booked it, nothing undoes that.
        return reservation.end <= now

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        missed = approval.mark_no_show.preview(request.act, request.reservation.pk).result
        preview = _build_attendance_preview(missed)
        if request.reservation.end > request.now:
            preview.facts.append(("Room", "Released at once, so that others can book it"))
        return preview

    def execute(self, request: ActionRequest) -> str:
        approval.mark_no_show(request.act, request.reservation.pk)
        return "Marked as no-show."


class UndoNoShowAction(Action):
    name, label, icon = "undo-no-show", "Undo no-show", "person"
    title, confirm_label = "Did the customer come after all?", "Undo the no-show"
    is_immediate = True

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.NO_SHOW

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        undone = approval.undo_no_show.preview(request.act, request.reservation.pk).result
        return _build_attendance_preview(undone)

    def execute(self, request: ActionRequest) -> str:
        approval.undo_no_show(request.act, request.reservation.pk)
        return "The no-show is undone."


class CheckInAction(Action):
    name, label, icon = "check-in", "Check in", "how_to_reg"
    title, confirm_label = "Has the customer arrived?", "Check in"
    is_primary = True
    is_immediate = True

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return check_in.can_check_in(reservation, now=now)

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        return _preview_check_in(check_in.check_in, request)

    def execute(self, request: ActionRequest) -> str:
        check_in.check_in(request.act, request.reservation.pk)
        return "Checked in."


class UndoCheckInAction(Action):
    name, label, icon = "undo-check-in", "Undo check-in", "undo"
    title, confirm_label = "Has the customer not arrived?", "Undo the check-in"
    is_immediate = True

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_checked_in

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        return _preview_check_in(check_in.undo_check_in, request)

    def execute(self, request: ActionRequest) -> str:
        check_in.undo_check_in(request.act, request.reservation.pk)
        return "The check-in is undone."


def _preview_check_in(change: Command[[], Reservation], request: ActionRequest) -> ActionPreview:
    reservation = change.preview(request.act, request.reservation.pk).result
    at = reservation.checked_in_at
    arrived = formatting.format_datetime(reservation, at) if at else "No"
    return ActionPreview(facts=[("Checked in", arrived), ("E-mail to", "Nobody")])


def _build_attendance_preview(reservation: Reservation) -> ActionPreview:
    status = Status(reservation.status).label
    return ActionPreview(
        facts=[("New status", status), ("Refund", "None"), ("E-mail to", "Nobody")]
    )


def _get_authorized_payment(reservation: Reservation) -> Payment | None:
    return next(iter(payment_recovery.get_booked_payments(reservation)), None)


def _describe_returned_benefits(reservation: Reservation) -> list[tuple[str, str]]:
    """The promo code use and the included hours that the customer gets back."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        facts.append(("Promo code", f"The use of {reservation.promo_code} is returned"))
    hours = sum(use.hours for use in reservation.allowance_uses.all())
    if hours:
        facts.append(("Included hours", f"{hours} h are returned"))
    return facts
