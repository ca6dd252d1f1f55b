"""What staff change of a reservation: its time or room, its price, its hold; or mail once more."""

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.conf import settings

from accounts.outbox import OutboxState
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.admin.actions.forms import HoldExtensionForm, PriceAdjustmentForm, RescheduleForm
from reservations.admin.bill_comparison import ComparableLine, compare_bills, format_signed
from reservations.booking import drafts, price_adjustments, rescheduling
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.models import Reservation
from reservations.notifications import emails
from roombook import dates, money


class RescheduleAction(Action):
    name, label, icon = "move", "Move", "open_with"
    question, confirm = "Move to another time or room", "Move it"
    form_class = RescheduleForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return rescheduling.can_reschedule(reservation, now=now)

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation, by = asked.reservation, asked.by
        would = rescheduling.preview(
            reservation.pk, **_get_target(asked.typed), by=by, now=asked.now
        )
        old, new = would.old, would.new
        effect = ActionPreview(
            facts=[
                ("From", f"{rescheduling.describe_room(old.room)}, {_format_place_time(old)}"),
                ("To", f"{rescheduling.describe_room(new.room)}, {_format_place_time(new)}"),
            ],
            problems=list(would.problems),
            agreed=would.new_total,
        )
        if would.can_be_waived and (
            refusal := rescheduling.get_waiver_refusal(by, old.room, new.room)
        ):
            effect.notes.append(refusal)
        if not would.new_lines:
            return effect
        _add_bill_comparison(
            effect, would.old_lines, would.new_lines, would.old_total, would.new_total
        )
        if would.waived:
            effect.facts.append(("Is waived", money.format_amount(would.waived)))
        if reservation.is_new:
            until = would.reservation.hold_until
            assert until is not None  # a draft that is moved holds its room
            effect.facts.append(
                ("Holds its room until", formatting.format_datetime(would.reservation, until))
            )
        elif not would.problems:
            effect.facts.append(("Is refunded", _format_amount(would.refund)))
            free_until = formatting.format_datetime(
                would.reservation, would.reservation.free_cancellation_until
            )
            effect.facts.append(("Can be cancelled free until", free_until))
            effect.facts.append(describe_email(reservation, "with the meeting's new time"))
        return effect

    def act(self, asked: ActionRequest) -> str:
        done = rescheduling.reschedule(
            asked.reservation.pk,
            **_get_target(asked.typed),
            expected_total=asked.agreed,
            by=asked.by,
            now=asked.now,
        )
        text = (
            f"Moved to {rescheduling.describe_room(done.new.room)}, {_format_place_time(done.new)}."
        )
        return text + (f" {money.format_amount(done.refund)} is refunded." if done.refund else "")


def _get_target(typed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "room_id": typed["room"].pk,
        "start": typed["start"],
        "end": typed["end"],
        "waiver": typed.get("waiver", ""),
    }


class AdjustPriceAction(Action):
    name, label, icon = "adjust", "Adjust price", "price_change"
    question, confirm = "Adjust the price", "Adjust the price"
    permission = ADJUST_PRICE
    form_class = PriceAdjustmentForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return price_adjustments.can_adjust(reservation)

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation, typed = asked.reservation, asked.typed
        old_lines = list(reservation.line_items.order_by("position"))
        would = price_adjustments.preview(
            reservation.pk,
            amount=typed["amount"],
            reason=typed["reason"],
            by=asked.by,
            now=asked.now,
        )
        effect = ActionPreview(agreed=would.new_total, was=would.old_total)
        _add_bill_comparison(effect, old_lines, would.lines, would.old_total, would.new_total)
        if not reservation.is_new:
            effect.facts.append(("Is refunded", _format_amount(would.refund)))
            effect.facts.append(describe_email(reservation, "with the bill"))
        return effect

    def act(self, asked: ActionRequest) -> str:
        done = price_adjustments.adjust_price(
            asked.reservation.pk,
            amount=asked.typed["amount"],
            reason=asked.typed["reason"],
            expected_old_total=asked.was,
            expected_total=asked.agreed,
            by=asked.by,
            now=asked.now,
        )
        text = f"It costs {money.format_amount(done.new_total)} now."
        return text + (f" {money.format_amount(done.refund)} is refunded." if done.refund else "")


class ExtendHoldAction(Action):
    name, label, icon = "hold", "Extend hold", "lock_clock"
    question, confirm = "Hold the room for longer", "Hold it"
    form_class = HoldExtensionForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.start > now

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation, now = asked.reservation, asked.now
        effect = ActionPreview()
        until: dt.datetime = asked.typed["until"]
        if reservation.is_held_at(now) and reservation.hold_until is not None:
            effect.facts.append(
                ("Held until", formatting.format_datetime(reservation, reservation.hold_until))
            )
            if until <= reservation.hold_until:
                effect.problems.append("It is held until then already.")
        else:
            effect.facts.append(("Held until", "not held: it lapsed"))
            answer = availability.evaluate_reservation(
                reservation, now=now, for_user=reservation.user
            )
            effect.problems += answer.staff_text
        effect.facts.append(("Then held until", formatting.format_datetime(reservation, until)))
        if until > drafts.get_latest_hold_end(reservation, now=now):
            hours = settings.HOLD_HOURS_STAFF
            effect.problems.append(
                f"A room is held for {hours} hours at most without being paid, and not beyond the"
                " start."
            )
        elif until <= now:
            effect.problems.append("That time has passed.")
        return effect

    def act(self, asked: ActionRequest) -> str:
        row = drafts.extend_hold(
            asked.reservation.pk, until=asked.typed["until"], by=asked.by, now=asked.now
        )
        assert row.hold_until is not None
        return f"Held until {formatting.format_datetime(row, row.hold_until)}."


class ResendEmailAction(Action):
    name, label, icon = "resend", "Resend mail", "forward_to_inbox"
    question, confirm = "Send the last mail once more", "Send it again"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return emails.get_last_email(reservation) is not None

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation = asked.reservation
        message = emails.get_last_email(reservation)
        if message is None:
            return ActionPreview(problems=["No mail was written about it yet."])
        effect = ActionPreview(
            facts=[
                ("Mail", message.kind),
                ("Subject", message.subject),
                ("To", reservation.user.email),
                ("State", OutboxState(message.state).label),
            ]
        )
        if message.state == OutboxState.WAITING:
            effect.problems.append("It is waiting to be sent anyway.")
        elif message.calendar:
            effect.notes.append(
                "Its file for the calendar is the same: a calendar that has the meeting already"
                " changes nothing."
            )
        return effect

    def act(self, asked: ActionRequest) -> str:
        message = emails.resend_last_email(asked.reservation.pk, by=asked.by, now=asked.now)
        return f"“{message.subject}” will be sent in a minute."


def _add_bill_comparison(
    effect: ActionPreview,
    old: Iterable[ComparableLine],
    new: Iterable[ComparableLine],
    old_total: Decimal,
    new_total: Decimal,
) -> None:
    effect.bill = compare_bills(old, new)
    effect.old_total, effect.new_total = (
        money.format_amount(old_total),
        money.format_amount(new_total),
    )
    effect.change = format_signed(new_total - old_total)


def _format_amount(amount: Decimal) -> str:
    return money.format_amount(amount) if amount else "nothing"


def _format_place_time(place: rescheduling.RoomSlot) -> str:
    return dates.format_span(place.start, place.end, place.room.center.zone)
