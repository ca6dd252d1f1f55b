"""The actions on a reservation that do not change what is booked: status, price, payment, hold."""

import datetime as dt
from decimal import Decimal
from typing import Any

from accounts.models import OutboxMessage
from payments.gateways.manual import TERMINAL
from payments.models import Payment
from reservations import display
from reservations.booking import (
    approval,
    cancellation,
    charging,
    check_in,
    checkout,
    drafts,
    no_show,
    payment_links,
    price_adjustments,
    resending,
)
from reservations.booking.amendments import ADJUST_PRICE
from reservations.booking.cancellation import Cancellation
from reservations.booking.commands import Preview
from reservations.booking.price_adjustments import Adjustment
from reservations.desk.actions.base import (
    Action,
    ActionPreview,
    ActionRequest,
    compare_bills,
    describe_due_refund,
    describe_email,
    format_refund,
)
from reservations.desk.actions.forms import (
    CancellationForm,
    HoldExtensionForm,
    MessageForm,
    PriceAdjustmentForm,
)
from reservations.desk.actions.payment_form import (
    LINK,
    SAVED_CARD,
    SEND_LINK,
    PaymentForm,
    describe_link_email,
    describe_sent_link,
    describe_way,
    explains_absent_customer,
)
from reservations.models import BookingChange, Reservation
from reservations.models.status import Status, can_transition
from reservations.notifications import confirmation, emails
from reservations.notifications.cancellation_terms import describe_cancellation
from reservations.notifications.confirmation import describe_card, describe_refund_target
from reservations.pricing.terms import ALL, get_terms, round_hours
from roombook import money
from roombook.deliveries import DeliveryState


class ApproveAction(Action):
    name, label, icon = "approve", "Approve", "check_circle"
    title, confirm_label = "Approve this request?", "Approve"
    is_primary = leads_to_next_request = True
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
                until = display.format_datetime(reservation, payment.authorized_until)
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
    is_dangerous = leads_to_next_request = True
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
        outcome = would.result.outcome
        preview = ActionPreview(
            facts=[
                ("New status", Status.CANCELLED.label),
                ("Refund", money.format_amount(outcome.refund)),
                ("Fee", money.format_amount(outcome.fee)),
            ],
            email=would.email,
            expected_amount=outcome.refund,
        )
        if outcome.decision is None:
            preview.notes.append(would.result.forecast)
        else:
            preview.facts.append(("By the policy", money.format_amount(outcome.policy_refund)))
        if reservation.booked_at is not None:
            preview.facts += [
                ("Terms", str(get_terms(reservation))),
                ("Now", describe_cancellation(reservation, now=request.act.now)),
                *_describe_returned_benefits(reservation, outcome.share),
                describe_email(reservation),
            ]
        return preview

    def report(self, result: Cancellation) -> str:
        return result.message


class AttendanceAction(Action):
    """Whether the customer has come. Nobody gets an e-mail, and no money moves by default."""

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        row = would.result
        arrived = display.format_datetime(row, row.checked_in_at) if row.checked_in_at else "No"
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
    command, done = no_show.mark_no_show, "Marked as no-show."

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        is_open = can_transition(reservation.status, Status.NO_SHOW)
        return is_open and reservation.start <= now and not reservation.is_checked_in

    def is_immediate_for(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        # Until the end it releases the room: once somebody has booked it, nothing undoes that. Nor
        # does anything undo a refund.
        is_paid_in_full = get_terms(reservation).no_show_percent == ALL
        return reservation.end <= now and is_paid_in_full

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        preview = super().describe(request, would)
        reservation = request.reservation
        if get_terms(reservation).no_show_percent < ALL:
            outcome = no_show.decide_no_show(reservation, charging.get_booked_payments(reservation))
            preview.facts[2:3] = [
                ("Refund", format_refund(outcome.refund)),
                ("Fee", money.format_amount(outcome.fee)),
                *_describe_returned_benefits(reservation, outcome.share),
            ]
        if request.reservation.end > request.act.now:
            preview.facts.append(("Room", "Released at once, so that others can book it"))
        return preview


class UndoNoShowAction(AttendanceAction):
    name, label, icon = "undo-no-show", "Undo no-show", "person"
    title, confirm_label = "Did the customer come after all?", "Undo the no-show"
    is_immediate = True
    command, done = no_show.undo_no_show, "The no-show is undone."

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
            held_until = _format_end(reservation, reservation.hold_until)
        facts = [
            ("Held until", held_until),
            ("Then held until", _format_end(reservation, would.result.hold_until)),
        ]
        return ActionPreview(facts=facts)

    def report(self, result: Reservation) -> str:
        return f"Held until {_format_end(result, result.hold_until)}."


class ResendEmailAction(Action):
    name, label, icon = "resend", "Resend e-mail", "forward_to_inbox"
    title, confirm_label = "Resend the last e-mail", "Resend"
    command = resending.resend_last_email

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


class TakePaymentForm(PaymentForm):
    """How the customer pays. A draft that costs nothing needs no data."""

    def prepare(self) -> None:
        if not self.reservation.total_cost:
            self.fields.clear()
            return
        self.prepare_ways()
        self.initial = {"way": TERMINAL.name, **self.initial}


class CancelLinkAction(Action):
    name, label, icon = "cancel-link", "Cancel payment link", "link_off"
    title, confirm_label = "Cancel the payment link", "Cancel payment link"
    is_immediate = True
    command = payment_links.cancel_link

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        if payment_links.find_waiting_change(reservation) is not None:
            return True
        return payment_links.can_cancel_links(reservation, now=now)

    def describe(self, request: ActionRequest, would: Preview[Reservation]) -> ActionPreview:
        reservation, until = request.reservation, request.reservation.payment_link_until
        if change := payment_links.find_waiting_change(reservation):
            until = change.link_until
        ends = display.format_datetime(reservation, until or request.act.now)
        return ActionPreview(facts=[("Would end", ends), ("E-mail to", "Nobody")])

    def report(self, result: Reservation) -> str:
        left = "The room is still held." if result.is_new else "The booking is as it was."
        return f"The payment link is cancelled. {left}"


class SendLinkAgainAction(Action):
    name, label, icon = "send-link-again", "Send payment link again", "forward_to_inbox"
    title, confirm_label = "Send the payment link again", SEND_LINK
    command = payment_links.send_change_link_again

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return payment_links.find_waiting_change(reservation) is not None

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {"base_url": request.base_url}

    def describe(self, request: ActionRequest, would: Preview[BookingChange]) -> ActionPreview:
        booking, change = request.reservation, would.result
        return ActionPreview(
            facts=[
                ("To", payment_links.describe_change(change)),
                ("To pay", money.format_amount(change.difference)),
                ("Held until", _format_end(booking, change.link_until)),
                describe_email(booking, "with the link"),
            ]
        )

    def report(self, result: BookingChange) -> str:
        return describe_sent_link(result)


class TakePaymentAction(Action):
    name, label, icon = "take-payment", "Take payment", "point_of_sale"
    title, confirm_label = "Take payment", "Take payment"
    is_primary = True
    form_class = TakePaymentForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.payable_until > now

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation, way = request.reservation, request.data.get("way")
        preview = ActionPreview(
            facts=[
                ("Price", money.format_amount(reservation.total_cost)),
                describe_email(reservation, "with the link" if way == LINK else "with the bill"),
            ],
            expected_amount=reservation.total_cost,
        )
        if way == LINK:
            preview.confirm_label = SEND_LINK
            link = payment_links.send_link.preview(
                request.act, reservation.pk, base_url=request.base_url
            )
            preview.facts.append(
                ("Held until", _format_end(reservation, link.result.payment_link_until))
            )
            return preview
        checkout.require_claimable(reservation, now=request.act.now)
        is_instant = reservation.room.is_live_inventory
        status = Status.CONFIRMED if is_instant else Status.PENDING
        preview.facts.insert(0, ("New status", str(status.label)))
        if way:
            describe_way(preview, reservation.user, way, reservation.total_cost)
        return preview

    def execute(self, request: ActionRequest) -> str:
        draft, way = request.reservation, request.data.get("way", "")
        shown_total = request.require_shown_amount()
        if way == LINK:
            held = payment_links.send_link(request.act, draft.pk, base_url=request.base_url)
            until = _format_end(draft, held.payment_link_until)
            return (
                f"{describe_link_email(draft)} The room is held for"
                f" {draft.user.get_full_name()} until {until}."
            )
        if way == SAVED_CARD:
            with explains_absent_customer():
                reservation = checkout.charge_saved_card(
                    request.act, draft, shown_total=shown_total
                )
        else:
            reservation = checkout.take_manual_payment(
                request.act,
                draft,
                gateway=way,
                reference=request.data.get("reference", ""),
                shown_total=shown_total,
            )
        status = display.format_status(reservation, now=request.act.now)
        return f"{status}. {confirmation.describe_payments(reservation)}"


def _format_end(reservation: Reservation, until: dt.datetime | None) -> str:
    """Until when a hold or a payment link lasts."""
    assert until is not None  # because the room is held
    return display.format_datetime(reservation, until)


def _get_authorized_payment(reservation: Reservation) -> Payment | None:
    return next(iter(charging.get_booked_payments(reservation)), None)


def _describe_returned_benefits(
    reservation: Reservation, share: Decimal = Decimal(1)
) -> list[tuple[str, str]]:
    """The promo code use and the included hours of which the customer gets this share back."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        outcome = "is returned" if share == 1 else "is not returned"
        facts.append(("Promo code", f"The use of {reservation.promo_code} {outcome}"))
    if uses := [each.hours for each in reservation.allowance_uses.all() if each.hours]:
        returned = sum(round_hours(hours * share) for hours in uses)
        of_all = "" if share == 1 else f" of {sum(uses)}"
        facts.append(("Included hours", f"{returned:g}{of_all} h are returned"))
    return facts
