"""What staff can do to a reservation: each step with who may take it, when it is offered, what it
would do, and the doing.

The page of a step tells the effect first; only what is confirmed there is done. Whatever is offered
or not, the domain judges again under its locks: a step that is forced by hand is refused in words.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings

from accounts import roles
from accounts.outbox import State
from payments.models import Payment, PaymentState
from reservations import (
    actions,
    adjusting,
    approval,
    availability,
    cancellation,
    history,
    mail,
    moving,
)
from reservations.adjusting import ADJUST
from reservations.confirmation import card
from reservations.locks import lock_reservation
from reservations.models import Reservation
from reservations.office.bills import Row, compared, signed
from reservations.office.step_forms import CHANGE, AdjustForm, HoldForm, MoveForm, StepForm
from reservations.status import Status, may_move
from roombook import money
from roombook.errors import DomainError, InvalidRequest, ReservationNotOpen
from roombook.transactions import in_transaction

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(slots=True)
class Effect:
    """What a step would do, in words; and why it cannot, where it cannot."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    bill: list[Row] = field(default_factory=list)
    old_total: str = ""
    new_total: str = ""
    change: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # What was shown, as the step is to do it, and what it would change: sent along with the
    # confirmation.
    agreed: Decimal | None = None
    was: Decimal | None = None


class Step:
    """One thing to do to a reservation."""

    name: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    # What the page asks, and the word on its button.
    question: ClassVar[str]
    confirm: ClassVar[str]
    is_dangerous: ClassVar[bool] = False
    permission: ClassVar[str] = CHANGE
    form_class: ClassVar[type[StepForm]] = StepForm

    def may(self, user: "User", reservation: Reservation) -> bool:
        return roles.may(user, self.permission, reservation.room.center_id)

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        raise NotImplementedError

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        """What it would do; nothing is done."""
        raise NotImplementedError

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        """Do it, and say what was done. Raises DomainError."""
        raise NotImplementedError


# --- Requests ------------------------------------------------------------------------------------


class Approve(Step):
    name, label, icon = "approve", "Approve", "check_circle"
    question, confirm = "Approve this request?", "Approve"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        answer = availability.of_reservation(reservation, now=now)
        payment = _reserved(reservation)
        effect = Effect(problems=told(answer), facts=[("Becomes", "Confirmed")])
        if payment is not None:
            taken = f"{money.display(payment.amount)} from {card(payment)}"
            effect.facts.append(("Is charged", taken))
            if payment.authorized_until is not None:
                until = mail.moment(reservation, payment.authorized_until)
                effect.facts.append(("Is reserved until", until))
        elif reservation.total_cost:
            effect.problems.append(
                "The money for this request is no longer reserved: approving it lets it expire."
            )
        else:
            effect.facts.append(("Is charged", "nothing: it is free"))
        effect.facts.append(_mail_goes(reservation))
        return effect

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        approval.approve(reservation.pk, by=by, now=now)
        return "Approved."


class Decline(Step):
    name, label, icon = "decline", "Decline", "block"
    question, confirm = "Decline this request?", "Decline"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        payment = _reserved(reservation)
        money_matters = (
            f"{money.display(payment.amount)} on {card(payment)}; nothing was charged"
            if payment
            else "nothing: no money is reserved"
        )
        return Effect(
            facts=[
                ("Becomes", "Declined"),
                ("Is let go", money_matters),
                *_given_back(reservation),
                _mail_goes(reservation),
            ]
        )

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        approval.decline(reservation.pk, by=by, now=now)
        return "Declined."


# --- Its end -------------------------------------------------------------------------------------


class Cancel(Step):
    name, label, icon = "cancel", "Cancel", "cancel"
    question, confirm = "Cancel this reservation?", "Cancel the reservation"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = not reservation.is_new and reservation.start <= now
        return may_move(reservation.status, Status.CANCELLED) and not has_begun

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        outcome = cancellation.preview(reservation, now=now)
        terms = cancellation.terms_of(reservation, now=now)
        facts = [
            ("Becomes", "Cancelled"),
            ("Refund", money.display(terms.refund)),
            ("Fee", money.display(terms.fee)),
        ]
        if reservation.booked_at is not None:
            free_until = mail.moment(reservation, reservation.free_until)
            facts.append(("Free until", free_until))
            facts += [*_given_back(reservation), _mail_goes(reservation)]
        return Effect(facts=facts, notes=[outcome.message], agreed=terms.refund)

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        if agreed is not None and cancellation.terms_of(reservation, now=now).refund != agreed:
            raise ReservationNotOpen(
                "The refund is another one by now. Nothing was done. Please look again."
            )
        return cancellation.cancel(reservation.pk, by=by, now=now).message


class NoShow(Step):
    name, label, icon = "no-show", "No-show", "person_off"
    question, confirm = "Did nobody come?", "Mark as no-show"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return may_move(reservation.status, Status.NO_SHOW) and reservation.start <= now

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        return Effect(
            facts=[
                ("Becomes", "No-show"),
                ("Refund", "nothing"),
                ("Mail", "none"),
            ]
        )

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        approval.mark_no_show(reservation.pk, by=by, now=now)
        return "Marked as no-show."


# --- Changes -------------------------------------------------------------------------------------


class Move(Step):
    name, label, icon = "move", "Move", "open_with"
    question, confirm = "Move to another time or room", "Move it"
    form_class = MoveForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return moving.movable(reservation, now=now)

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        would = moving.preview(reservation.pk, **_where(typed), by=by, now=now)
        old, new = would.old, would.new
        effect = Effect(
            facts=[
                ("From", f"{moving.named(old.room)}, {_when(old)}"),
                ("To", f"{moving.named(new.room)}, {_when(new)}"),
            ],
            problems=list(would.problems),
            agreed=would.new_total,
        )
        if would.could_be_waived and (refusal := moving.why_no_waiver(by, old.room, new.room)):
            effect.notes.append(refusal)
        if not would.new_lines:
            return effect
        _compare(effect, would.old_lines, would.new_lines, would.old_total, would.new_total)
        if would.waived:
            effect.facts.append(("Is waived", money.display(would.waived)))
        if reservation.is_new:
            until = would.reservation.hold_until
            assert until is not None  # a draft that is moved holds its room
            effect.facts.append(("Holds its room until", mail.moment(would.reservation, until)))
        elif not would.problems:
            effect.facts.append(("Is refunded", _or_nothing(would.refund)))
            free_until = mail.moment(would.reservation, would.reservation.free_until)
            effect.facts.append(("Can be cancelled free until", free_until))
            effect.facts.append(_mail_goes(reservation, "with the meeting's new time"))
        return effect

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        done = moving.move(reservation.pk, **_where(typed), agreed=agreed, by=by, now=now)
        text = f"Moved to {moving.named(done.new.room)}, {_when(done.new)}."
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
        return adjusting.adjustable(reservation)

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        old_lines = list(reservation.line_items.order_by("position"))
        would = adjusting.preview(
            reservation.pk, amount=typed["amount"], reason=typed["reason"], by=by, now=now
        )
        effect = Effect(agreed=would.new_total, was=would.old_total)
        _compare(effect, old_lines, would.lines, would.old_total, would.new_total)
        if not reservation.is_new:
            effect.facts.append(("Is refunded", _or_nothing(would.refund)))
            effect.facts.append(_mail_goes(reservation, "with the bill"))
        return effect

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        done = adjusting.adjust_price(
            reservation.pk,
            amount=typed["amount"],
            reason=typed["reason"],
            was=was,
            agreed=agreed,
            by=by,
            now=now,
        )
        text = f"It costs {money.display(done.new_total)} now."
        return text + (f" {money.display(done.refund)} is refunded." if done.refund else "")


class ExtendHold(Step):
    name, label, icon = "hold", "Extend hold", "lock_clock"
    question, confirm = "Hold the room for longer", "Hold it"
    form_class = HoldForm

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.start > now

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        effect = Effect()
        until: dt.datetime = typed["until"]
        if reservation.is_held_at(now) and reservation.hold_until is not None:
            effect.facts.append(("Held until", mail.moment(reservation, reservation.hold_until)))
            if until <= reservation.hold_until:
                effect.problems.append("It is held until then already.")
        else:
            effect.facts.append(("Held until", "not held: it lapsed"))
            answer = availability.of_reservation(reservation, now=now, for_user=reservation.user)
            effect.problems += told(answer)
        effect.facts.append(("Then held until", mail.moment(reservation, until)))
        if until > actions.longest_hold(reservation, now=now):
            hours = settings.HOLD_HOURS_STAFF
            effect.problems.append(
                f"A room is held for {hours} hours at most without being paid, and not beyond the"
                " start."
            )
        elif until <= now:
            effect.problems.append("That time has passed.")
        return effect

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        row = actions.extend_hold(reservation.pk, until=typed["until"], by=by, now=now)
        assert row.hold_until is not None
        return f"Held until {mail.moment(reservation, row.hold_until)}."


class Resend(Step):
    name, label, icon = "resend", "Resend mail", "forward_to_inbox"
    question, confirm = "Send the last mail once more", "Send it again"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return mail.last_about(reservation) is not None

    def effect(
        self, reservation: Reservation, typed: Mapping[str, Any], *, by: "User", now: dt.datetime
    ) -> Effect:
        message = mail.last_about(reservation)
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

    def act(
        self,
        reservation: Reservation,
        typed: Mapping[str, Any],
        *,
        was: Decimal | None,
        agreed: Decimal | None,
        by: "User",
        now: dt.datetime,
    ) -> str:
        return resend(reservation.pk, by=by, now=now)


@in_transaction
def resend(reservation_id: int, *, by: "User", now: dt.datetime) -> str:
    """Let the last mail about a reservation go out once more."""
    reservation = lock_reservation(reservation_id)
    message = mail.resend(reservation, now=now)
    if message is None:
        raise ReservationNotOpen("It is waiting to be sent anyway, or there is none.")
    history.record(reservation, {"mail": (None, f"{message.kind}, sent again")}, by=by, now=now)
    return f"“{message.subject}” will be sent in a minute."


STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        *(Approve(), Decline(), Move(), Adjust(), ExtendHold(), Resend(), NoShow(), Cancel()),
    )
}


def offered_to(user: "User", reservation: Reservation, *, now: dt.datetime) -> list[Step]:
    """The steps that this member of staff can take with it now."""
    return [
        step
        for step in STEPS.values()
        if step.may(user, reservation) and step.is_offered(reservation, now=now)
    ]


# --- Words ---------------------------------------------------------------------------------------


def told(answer: availability.Availability) -> list[str]:
    """Why a room cannot be had; some reasons have no more to say to staff than to customers."""
    return [" ".join({each.message: 1, each.detail: 1}) for each in answer.reasons]


def words(error: DomainError) -> str:
    """A refusal in full: which fields are wrong stands beside its message."""
    return " ".join(error.fields.values() if isinstance(error, InvalidRequest) else ()) or (
        error.message
    )


def _compare(effect: Effect, old: Any, new: Any, old_total: Decimal, new_total: Decimal) -> None:
    effect.bill = compared(old, new)
    effect.old_total, effect.new_total = money.display(old_total), money.display(new_total)
    effect.change = signed(new_total - old_total)


def _or_nothing(amount: Decimal) -> str:
    return money.display(amount) if amount else "nothing"


def _when(place: moving.Place) -> str:
    return mail.when_at(place.room.center, place.start, place.end)


def _reserved(reservation: Reservation) -> Payment | None:
    payment = cancellation.open_payment_of(reservation)
    is_held = payment is not None and payment.state in {
        PaymentState.AUTHORIZED,
        PaymentState.CAPTURED,
    }
    return payment if is_held else None


def _given_back(reservation: Reservation) -> list[tuple[str, str]]:
    """What the end of a booking makes free to be used again."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        facts.append(("Promo code", f"the use of {reservation.promo_code} is given back"))
    hours = sum(use.hours for use in reservation.allowance_uses.all())
    if hours:
        facts.append(("Included hours", f"{hours} h are given back"))
    return facts


def _mail_goes(reservation: Reservation, what: str = "") -> tuple[str, str]:
    to = reservation.user.get_full_name() or "the customer"
    return "Mail", f"goes to {to}{f', {what}' if what else ''}"
