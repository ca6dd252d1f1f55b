"""What becomes of a reservation by the center's will: approved, declined, a no-show, cancelled."""

import datetime as dt

from payments.models import Payment
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.booking import approval, cancellation, checkout
from reservations.models import Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications.confirmation import describe_card
from roombook import money


class ApproveAction(Action):
    name, label, icon = "approve", "Approve", "check_circle"
    question, confirm = "Approve this request?", "Approve"

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation = asked.reservation
        answer = availability.evaluate_reservation(reservation, now=asked.now)
        payment = _get_authorized_payment(reservation)
        effect = ActionPreview(problems=list(answer.staff_text), facts=[("Becomes", "Confirmed")])
        if payment is not None:
            taken = f"{money.format_amount(payment.amount)} from {describe_card(payment)}"
            effect.facts.append(("Is charged", taken))
            if payment.authorized_until is not None:
                until = formatting.format_datetime(reservation, payment.authorized_until)
                effect.facts.append(("Is reserved until", until))
        elif reservation.total_cost:
            effect.problems.append(
                "The money for this request is no longer reserved: approving it lets it expire."
            )
        else:
            effect.facts.append(("Is charged", "nothing: it is free"))
        effect.facts.append(describe_email(reservation))
        return effect

    def act(self, asked: ActionRequest) -> str:
        approval.approve(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Approved."


class DeclineAction(Action):
    name, label, icon = "decline", "Decline", "block"
    question, confirm = "Decline this request?", "Decline"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.status == Status.PENDING

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation = asked.reservation
        payment = _get_authorized_payment(reservation)
        money_matters = (
            f"{money.format_amount(payment.amount)} on {describe_card(payment)};"
            " nothing was charged"
            if payment
            else "nothing: no money is reserved"
        )
        return ActionPreview(
            facts=[
                ("Becomes", "Declined"),
                ("Is let go", money_matters),
                *_describe_restored_benefits(reservation),
                describe_email(reservation),
            ]
        )

    def act(self, asked: ActionRequest) -> str:
        approval.decline(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Declined."


class CancelAction(Action):
    name, label, icon = "cancel", "Cancel", "cancel"
    question, confirm = "Cancel this reservation?", "Cancel the reservation"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = not reservation.is_new and reservation.start <= now
        return can_transition(reservation.status, Status.CANCELLED) and not has_begun

    def effect(self, asked: ActionRequest) -> ActionPreview:
        reservation = asked.reservation
        outcome = cancellation.preview(reservation, now=asked.now)
        terms = cancellation.get_terms(reservation, now=asked.now)
        facts = [
            ("Becomes", "Cancelled"),
            ("Refund", money.format_amount(terms.refund)),
            ("Fee", money.format_amount(terms.fee)),
        ]
        if reservation.booked_at is not None:
            free_until = formatting.format_datetime(
                reservation, reservation.free_cancellation_until
            )
            facts.append(("Free until", free_until))
            facts += [*_describe_restored_benefits(reservation), describe_email(reservation)]
        return ActionPreview(facts=facts, notes=[outcome.message], agreed=terms.refund)

    def act(self, asked: ActionRequest) -> str:
        done = cancellation.cancel(
            asked.reservation.pk, expected_refund=asked.agreed, by=asked.by, now=asked.now
        )
        return done.message


class NoShowAction(Action):
    name, label, icon = "no-show", "No-show", "person_off"
    question, confirm = "Did nobody come?", "Mark as no-show"
    is_dangerous = True

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return can_transition(reservation.status, Status.NO_SHOW) and reservation.start <= now

    def effect(self, asked: ActionRequest) -> ActionPreview:
        return ActionPreview(
            facts=[
                ("Becomes", "No-show"),
                ("Refund", "nothing"),
                ("Mail", "none"),
            ]
        )

    def act(self, asked: ActionRequest) -> str:
        approval.mark_no_show(asked.reservation.pk, by=asked.by, now=asked.now)
        return "Marked as no-show."


def _get_authorized_payment(reservation: Reservation) -> Payment | None:
    payment = cancellation.get_open_payment(reservation)
    is_held = payment is not None and payment.state in checkout.FUNDED_STATES
    return payment if is_held else None


def _describe_restored_benefits(reservation: Reservation) -> list[tuple[str, str]]:
    """What the end of a booking makes free to be used again."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        facts.append(("Promo code", f"the use of {reservation.promo_code} is given back"))
    hours = sum(use.hours for use in reservation.allowance_uses.all())
    if hours:
        facts.append(("Included hours", f"{hours} h are given back"))
    return facts
