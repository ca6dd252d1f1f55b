"""What becomes of a reservation by the center's will: approved, declined, a no-show, cancelled."""

import datetime as dt

from payments.models import Payment
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Asked, Effect, Step, mail_goes
from reservations.booking import approval, cancellation, checkout
from reservations.models import Reservation
from reservations.models.status import Status, may_move
from reservations.notifications.confirmation import card
from roombook import money


class Approve(Step):
    name, label, icon = "approve", "Approve", "check_circle"
    question, confirm = "Approve this request?", "Approve"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(self, asked: Asked) -> Effect:
        reservation = asked.reservation
        answer = availability.of_reservation(reservation, now=asked.now)
        payment = _reserved(reservation)
        effect = Effect(problems=list(answer.in_full), facts=[("Becomes", "Confirmed")])
        if payment is not None:
            taken = f"{money.display(payment.amount)} from {card(payment)}"
            effect.facts.append(("Is charged", taken))
            if payment.authorized_until is not None:
                until = formatting.moment(reservation, payment.authorized_until)
                effect.facts.append(("Is reserved until", until))
        elif reservation.total_cost:
            effect.problems.append(
                "The money for this request is no longer reserved: approving it lets it expire."
            )
        else:
            effect.facts.append(("Is charged", "nothing: it is free"))
        effect.facts.append(mail_goes(reservation))
        return effect

    def act(self, asked: Asked) -> str:
        approval.approve(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Approved."


class Decline(Step):
    name, label, icon = "decline", "Decline", "block"
    question, confirm = "Decline this request?", "Decline"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(self, asked: Asked) -> Effect:
        reservation = asked.reservation
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
                mail_goes(reservation),
            ]
        )

    def act(self, asked: Asked) -> str:
        approval.decline(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Declined."


class Cancel(Step):
    name, label, icon = "cancel", "Cancel", "cancel"
    question, confirm = "Cancel this reservation?", "Cancel the reservation"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = not reservation.is_new and reservation.start <= now
        return may_move(reservation.status, Status.CANCELLED) and not has_begun

    def effect(self, asked: Asked) -> Effect:
        reservation = asked.reservation
        outcome = cancellation.preview(reservation, now=asked.now)
        terms = cancellation.terms_of(reservation, now=asked.now)
        facts = [
            ("Becomes", "Cancelled"),
            ("Refund", money.display(terms.refund)),
            ("Fee", money.display(terms.fee)),
        ]
        if reservation.booked_at is not None:
            free_until = formatting.moment(reservation, reservation.free_until)
            facts.append(("Free until", free_until))
            facts += [*_given_back(reservation), mail_goes(reservation)]
        return Effect(facts=facts, notes=[outcome.message], agreed=terms.refund)

    def act(self, asked: Asked) -> str:
        done = cancellation.cancel(
            asked.reservation.pk, agreed=asked.agreed, by=asked.by, now=asked.now
        )
        return done.message


class NoShow(Step):
    name, label, icon = "no-show", "No-show", "person_off"
    question, confirm = "Did nobody come?", "Mark as no-show"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return may_move(reservation.status, Status.NO_SHOW) and reservation.start <= now

    def effect(self, asked: Asked) -> Effect:
        return Effect(
            facts=[
                ("Becomes", "No-show"),
                ("Refund", "nothing"),
                ("Mail", "none"),
            ]
        )

    def act(self, asked: Asked) -> str:
        approval.mark_no_show(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Marked as no-show."


def _reserved(reservation: Reservation) -> Payment | None:
    payment = cancellation.open_payment_of(reservation)
    is_held = payment is not None and payment.state in checkout.MONEY_RESERVED
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
