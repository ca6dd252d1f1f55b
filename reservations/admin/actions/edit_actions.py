"""Actions that keep the status: move, adjust the price, extend the hold, resend an e-mail."""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from accounts.models import OutboxState
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.admin.actions.forms import HoldExtensionForm, PriceAdjustmentForm, RescheduleForm
from reservations.admin.bill_comparison import compare_bills
from reservations.booking import hold_extension, price_adjustments, reminders, rescheduling
from reservations.booking.change_request import RoomSlot
from reservations.booking.change_steps import describe_room
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.models import Reservation
from reservations.notifications import emails
from roombook import dates, money


class RescheduleAction(Action):
    name, label, icon = "move", "Reschedule", "open_with"
    title, confirm_label = "Reschedule to another time or room", "Reschedule"
    form_class = RescheduleForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return rescheduling.can_reschedule(reservation, now=now)

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation = request.reservation
        result = rescheduling.preview(
            reservation.pk, **_get_target(request.data), by=request.by, now=request.now
        )
        old, new = result.old, result.new
        preview = ActionPreview(
            facts=[("From", _describe_slot(old)), ("To", _describe_slot(new))],
            problems=list(result.problems),
            expected_amount=result.new_total,
        )
        if result.can_be_waived:
            refusal = rescheduling.get_waiver_refusal(request.by, old.room, new.room)
            preview.notes += [refusal] if refusal else []
        if not result.new_lines:
            return preview
        preview.bill = compare_bills(
            result.old_lines,
            result.new_lines,
            old_total=result.old_total,
            new_total=result.new_total,
        )
        if result.waived:
            preview.facts.append(("Waived", money.format_amount(result.waived)))
        moved = result.reservation
        if reservation.is_new:
            assert moved.hold_until is not None  # a draft that is moved holds its room
            held_until = formatting.format_datetime(moved, moved.hold_until)
            preview.facts.append(("Room held until", held_until))
        elif not result.problems:
            free_until = formatting.format_datetime(moved, moved.free_cancellation_until)
            preview.facts += [
                ("Refund", _format_amount(result.refund)),
                ("Free cancellation until", free_until),
                describe_email(reservation, "with the new time"),
            ]
        if not result.problems and not result.difference and not result.waived:
            preview.undo = _build_undo(reservation, old, new)
        return preview

    def execute(self, request: ActionRequest) -> str:
        result = rescheduling.reschedule(
            request.reservation.pk,
            **_get_target(request.data),
            expected_total=request.expected_amount,
            by=request.by,
            now=request.now,
        )
        return f"Rescheduled to {_describe_slot(result.new)}.{_describe_refund(result.refund)}"


def _get_target(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "room_id": data["room"].pk,
        "start": data["start"],
        "end": data["end"],
        "waiver": data.get("waiver", ""),
        "expected_slot": data["expected_slot"],
    }


def _build_undo(reservation: Reservation, old: RoomSlot, new: RoomSlot) -> dict[str, str]:
    """What has to be submitted to move the reservation back, if that would restore it exactly.

    An override of the opening hours would be lost, and a local time that occurs twice is the first.
    """
    start, end = (at.astimezone(old.room.center.zone) for at in (old.start, old.end))
    if reservation.hours_override_reason or start.fold or end.fold:
        return {}
    return {
        "room": str(old.room.pk),
        "start_0": f"{start:%Y-%m-%d}",
        "start_1": f"{start:%H:%M}",
        "end_0": f"{end:%Y-%m-%d}",
        "end_1": f"{end:%H:%M}",
        "expected_slot": new.key,
        "expected_amount": str(reservation.total_cost),
    }


def _describe_slot(slot: RoomSlot) -> str:
    time = dates.format_span(slot.start, slot.end, slot.room.center.zone)
    return f"{describe_room(slot.room)}, {time}"


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
            expected_old_total=result.old_total,
        )
        if not reservation.is_new:
            preview.facts.append(("Refund", _format_amount(result.refund)))
            preview.facts.append(describe_email(reservation, "with the bill"))
        return preview

    def execute(self, request: ActionRequest) -> str:
        result = price_adjustments.adjust_price(
            request.reservation.pk,
            amount=request.data["amount"],
            reason=request.data["reason"],
            expected_old_total=request.expected_old_total,
            expected_total=request.expected_amount,
            by=request.by,
            now=request.now,
        )
        total = money.format_amount(result.new_total)
        return f"The new price is {total}.{_describe_refund(result.refund)}"


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
        return emails.get_last_email(reservation) is not None

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        message = emails.get_last_email(request.reservation)
        if message is None:
            return ActionPreview(problems=["No e-mail about it has been written yet."])
        preview = ActionPreview(
            facts=[
                ("E-mail", message.kind),
                ("Subject", message.subject),
                ("E-mail to", request.reservation.user.email),
                ("State", OutboxState(message.state).label),
            ]
        )
        if message.state == OutboxState.WAITING:
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


def _format_amount(amount: Decimal) -> str:
    return money.format_amount(amount) if amount else "None"


def _describe_refund(refund: Decimal) -> str:
    return f" {money.format_amount(refund)} will be refunded." if refund else ""
