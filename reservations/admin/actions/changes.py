"""What staff change of a reservation: its time or room, its price, its hold; or mail once more."""

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.conf import settings

from accounts.outbox import State
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Asked, Effect, Step, mail_goes
from reservations.admin.actions.forms import AdjustForm, HoldForm, MoveForm
from reservations.admin.bill_comparison import AnyLine, compared, signed
from reservations.booking import drafts, price_adjustments, rescheduling
from reservations.booking.price_adjustments import ADJUST
from reservations.models import Reservation
from reservations.notifications import emails
from roombook import dates, money


class Move(Step):
    name, label, icon = "move", "Move", "open_with"
    question, confirm = "Move to another time or room", "Move it"
    form_class = MoveForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return rescheduling.movable(reservation, now=now)

    def effect(self, asked: Asked) -> Effect:
        reservation, by = asked.reservation, asked.by
        would = rescheduling.preview(reservation.pk, **_where(asked.typed), by=by, now=asked.now)
        old, new = would.old, would.new
        effect = Effect(
            facts=[
                ("From", f"{rescheduling.named(old.room)}, {_when(old)}"),
                ("To", f"{rescheduling.named(new.room)}, {_when(new)}"),
            ],
            problems=list(would.problems),
            agreed=would.new_total,
        )
        if would.could_be_waived and (
            refusal := rescheduling.why_no_waiver(by, old.room, new.room)
        ):
            effect.notes.append(refusal)
        if not would.new_lines:
            return effect
        _compare(effect, would.old_lines, would.new_lines, would.old_total, would.new_total)
        if would.waived:
            effect.facts.append(("Is waived", money.display(would.waived)))
        if reservation.is_new:
            until = would.reservation.hold_until
            assert until is not None  # a draft that is moved holds its room
            effect.facts.append(
                ("Holds its room until", formatting.moment(would.reservation, until))
            )
        elif not would.problems:
            effect.facts.append(("Is refunded", _or_nothing(would.refund)))
            free_until = formatting.moment(would.reservation, would.reservation.free_until)
            effect.facts.append(("Can be cancelled free until", free_until))
            effect.facts.append(mail_goes(reservation, "with the meeting's new time"))
        return effect

    def act(self, asked: Asked) -> str:
        done = rescheduling.move(
            asked.reservation.pk,
            **_where(asked.typed),
            agreed=asked.agreed,
            by=asked.by,
            now=asked.now,
        )
        text = f"Moved to {rescheduling.named(done.new.room)}, {_when(done.new)}."
        return text + (f" {money.display(done.refund)} is refunded." if done.refund else "")


def _where(typed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "room_id": typed["room"].pk,
        "start": typed["start"],
        "end": typed["end"],
        "waiver": typed.get("waiver", ""),
    }


class Adjust(Step):
    name, label, icon = "adjust", "Adjust price", "price_change"
    question, confirm = "Adjust the price", "Adjust the price"
    permission = ADJUST
    form_class = AdjustForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return price_adjustments.adjustable(reservation)

    def effect(self, asked: Asked) -> Effect:
        reservation, typed = asked.reservation, asked.typed
        old_lines = list(reservation.line_items.order_by("position"))
        would = price_adjustments.preview(
            reservation.pk,
            amount=typed["amount"],
            reason=typed["reason"],
            by=asked.by,
            now=asked.now,
        )
        effect = Effect(agreed=would.new_total, was=would.old_total)
        _compare(effect, old_lines, would.lines, would.old_total, would.new_total)
        if not reservation.is_new:
            effect.facts.append(("Is refunded", _or_nothing(would.refund)))
            effect.facts.append(mail_goes(reservation, "with the bill"))
        return effect

    def act(self, asked: Asked) -> str:
        done = price_adjustments.adjust_price(
            asked.reservation.pk,
            amount=asked.typed["amount"],
            reason=asked.typed["reason"],
            was=asked.was,
            agreed=asked.agreed,
            by=asked.by,
            now=asked.now,
        )
        text = f"It costs {money.display(done.new_total)} now."
        return text + (f" {money.display(done.refund)} is refunded." if done.refund else "")


class ExtendHold(Step):
    name, label, icon = "hold", "Extend hold", "lock_clock"
    question, confirm = "Hold the room for longer", "Hold it"
    form_class = HoldForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.start > now

    def effect(self, asked: Asked) -> Effect:
        reservation, now = asked.reservation, asked.now
        effect = Effect()
        until: dt.datetime = asked.typed["until"]
        if reservation.is_held_at(now) and reservation.hold_until is not None:
            effect.facts.append(
                ("Held until", formatting.moment(reservation, reservation.hold_until))
            )
            if until <= reservation.hold_until:
                effect.problems.append("It is held until then already.")
        else:
            effect.facts.append(("Held until", "not held: it lapsed"))
            answer = availability.of_reservation(reservation, now=now, for_user=reservation.user)
            effect.problems += answer.in_full
        effect.facts.append(("Then held until", formatting.moment(reservation, until)))
        if until > drafts.longest_hold(reservation, now=now):
            hours = settings.HOLD_HOURS_STAFF
            effect.problems.append(
                f"A room is held for {hours} hours at most without being paid, and not beyond the"
                " start."
            )
        elif until <= now:
            effect.problems.append("That time has passed.")
        return effect

    def act(self, asked: Asked) -> str:
        row = drafts.extend_hold(
            asked.reservation.pk, until=asked.typed["until"], by=asked.by, now=asked.now
        )
        assert row.hold_until is not None
        return f"Held until {formatting.moment(row, row.hold_until)}."


class Resend(Step):
    name, label, icon = "resend", "Resend mail", "forward_to_inbox"
    question, confirm = "Send the last mail once more", "Send it again"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return emails.last_about(reservation) is not None

    def effect(self, asked: Asked) -> Effect:
        reservation = asked.reservation
        message = emails.last_about(reservation)
        if message is None:
            return Effect(problems=["No mail was written about it yet."])
        effect = Effect(
            facts=[
                ("Mail", message.kind),
                ("Subject", message.subject),
                ("To", reservation.user.email),
                ("State", State(message.state).label),
            ]
        )
        if message.state == State.WAITING:
            effect.problems.append("It is waiting to be sent anyway.")
        elif message.calendar:
            effect.notes.append(
                "Its file for the calendar is the same: a calendar that has the meeting already"
                " changes nothing."
            )
        return effect

    def act(self, asked: Asked) -> str:
        message = emails.resend(asked.reservation.pk, by=asked.by, now=asked.now)
        return f"“{message.subject}” will be sent in a minute."


def _compare(
    effect: Effect,
    old: Iterable[AnyLine],
    new: Iterable[AnyLine],
    old_total: Decimal,
    new_total: Decimal,
) -> None:
    effect.bill = compared(old, new)
    effect.old_total, effect.new_total = money.display(old_total), money.display(new_total)
    effect.change = signed(new_total - old_total)


def _or_nothing(amount: Decimal) -> str:
    return money.display(amount) if amount else "nothing"


def _when(place: rescheduling.Place) -> str:
    return dates.span(place.start, place.end, place.room.center.zone)
