"""Actions that keep the status: adjust the price, extend the hold, resend an e-mail."""

import datetime as dt

from reservations.admin import formatting
from reservations.admin.actions.base import (
    Action,
    ActionPreview,
    ActionRequest,
    describe_due_refund,
    describe_email,
    format_refund,
)
from reservations.admin.actions.forms import HoldExtensionForm, PriceAdjustmentForm
from reservations.admin.bill_comparison import compare_bills
from reservations.booking import hold_extension, price_adjustments, reminders
from reservations.booking.amendments import ADJUST_PRICE
from reservations.models import Reservation
from reservations.notifications import emails
from roombook import money
from roombook.deliveries import DeliveryState


class AdjustPriceAction(Action):
    name, label, icon = "adjust", "Adjust price", "price_change"
    title, confirm_label = "Adjust the price", "Adjust the price"
    permission = ADJUST_PRICE
    form_class = PriceAdjustmentForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return price_adjustments.can_adjust(reservation)

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation = request.reservation
        old_lines = list(reservation.line_items.order_by("position"))
        result = price_adjustments.preview(
            reservation.pk,
            amount=request.data["amount"],
            reason=request.data["reason"],
            by=request.by,
            now=request.now,
        )
        preview = ActionPreview(
            bill=compare_bills(
                old_lines, result.lines, old_total=result.old_total, new_total=result.new_total
            ),
            expected_amount=result.new_total,
            expected_version=reservation.version,
        )
        if not reservation.is_new:
            preview.facts.append(("Refund", format_refund(result.refund)))
            preview.facts.append(describe_email(reservation, "with the bill"))
        return preview

    def execute(self, request: ActionRequest) -> str:
        result = price_adjustments.adjust_price(
            request.reservation.pk,
            amount=request.data["amount"],
            reason=request.data["reason"],
            expected_version=request.expected_version,
            expected_total=request.expected_amount,
            by=request.by,
            now=request.now,
        )
        total = money.format_amount(result.new_total)
        return f"The new price is {total}.{describe_due_refund(result.refund)}"


class ExtendHoldAction(Action):
    name, label, icon = "hold", "Extend hold", "lock_clock"
    title, confirm_label = "Extend the hold of the room", "Extend the hold"
    form_class = HoldExtensionForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return hold_extension.can_extend_hold(reservation, now=now)

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation, until = request.reservation, request.data["until"]
        hold_extension.validate_hold_end(reservation, until, now=request.now)
        held_until = "Not held, the hold has expired"
        if reservation.hold_until is not None and reservation.is_held_at(request.now):
            held_until = formatting.format_datetime(reservation, reservation.hold_until)
        return ActionPreview(
            facts=[
                ("Held until", held_until),
                ("Then held until", formatting.format_datetime(reservation, until)),
            ]
        )

    def execute(self, request: ActionRequest) -> str:
        reservation = hold_extension.extend_hold(
            request.reservation.pk, until=request.data["until"], by=request.by, now=request.now
        )
        assert reservation.hold_until is not None
        return f"Held until {formatting.format_datetime(reservation, reservation.hold_until)}."


class ResendEmailAction(Action):
    name, label, icon = "resend", "Resend e-mail", "forward_to_inbox"
    title, confirm_label = "Resend the last e-mail", "Resend"

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return emails.get_last_email(reservation.pk) is not None

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        message = emails.get_last_email(request.reservation.pk)
        if message is None:
            return ActionPreview(problems=["No e-mail about it has been written yet."])
        preview = ActionPreview(
            facts=[
                ("E-mail", message.kind),
                ("Subject", message.subject),
                ("E-mail to", request.reservation.user.email),
                ("State", DeliveryState(message.state).label),
            ]
        )
        if request.reservation.has_former_address:
            preview.notes.append("The address has changed: the customer gets the new details.")
        elif message.state == DeliveryState.WAITING:
            preview.problems.append("It is already waiting to be sent.")
        elif message.calendar:
            preview.notes.append(
                "The attached calendar file is the same: a calendar that has the meeting already"
                " does not change."
            )
        return preview

    def execute(self, request: ActionRequest) -> str:
        message = reminders.resend_last_email(
            request.reservation.pk, by=request.by, now=request.now
        )
        return f"“{message.subject}” will be sent within a minute."
