"""The action that takes the payment of a draft, in any way (B26)."""

import datetime as dt

from payments.gateways.manual import TERMINAL
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.admin.actions.payment_form import (
    LINK,
    SAVED_CARD,
    PaymentForm,
    describe_sent_link,
    describe_way,
    explains_absent_customer,
)
from reservations.booking import checkout, differences, payment_links
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook import money
from roombook.errors import ReservationNotOpen


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

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        if payment_links.find_waiting_change(reservation) is not None:
            return True
        return payment_links.can_cancel_links(reservation, now=now)

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation, until = request.reservation, request.reservation.payment_link_until
        if change := payment_links.find_waiting_change(reservation):
            until = change.link_until
        ends = formatting.format_datetime(reservation, until or request.now)
        return ActionPreview(facts=[("Would end", ends), ("E-mail to", "Nobody")])

    def execute(self, request: ActionRequest) -> str:
        booking = request.reservation
        if not booking.is_new:
            payment_links.cancel_change_link(booking.pk, by=request.by, now=request.now)
            return "The payment link is cancelled. The booking is as it was."
        payment_links.cancel_links(booking.pk, by=request.by, now=request.now)
        return "The payment link is cancelled. The room is still held."


class SendLinkAgainAction(Action):
    name, label, icon = "send-link-again", "Send payment link again", "forward_to_inbox"
    title, confirm_label = "Send the payment link again", "Send payment link"

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return payment_links.find_waiting_change(reservation) is not None

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        booking = request.reservation
        change = payment_links.find_waiting_change(booking)
        if change is None:
            raise ReservationNotOpen(payment_links.NO_LINK)
        until = differences.get_link_end(booking, change.start, now=request.now)
        return ActionPreview(
            facts=[
                ("To", payment_links.describe_change(change)),
                ("To pay", money.format_amount(change.difference)),
                ("Held until", formatting.format_datetime(booking, until)),
                describe_email(booking, "with the link"),
            ]
        )

    def execute(self, request: ActionRequest) -> str:
        change = payment_links.send_change_link_again(
            request.reservation, base_url=request.base_url, by=request.by, now=request.now
        )
        return describe_sent_link(change)


class TakePaymentAction(Action):
    name, label, icon = "take-payment", "Take payment", "point_of_sale"
    title, confirm_label = "Take payment", "Take payment"
    is_primary = True
    form_class = TakePaymentForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.payable_until > now

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation, way = request.reservation, request.data.get("way")
        answer = availability.evaluate_reservation(
            reservation, now=request.now, for_user=reservation.user
        )
        preview = ActionPreview(
            problems=list(answer.staff_texts),
            facts=[
                ("Price", money.format_amount(reservation.total_cost)),
                describe_email(reservation, "with the link" if way == LINK else "with the bill"),
            ],
            expected_amount=reservation.total_cost,
        )
        if way == LINK:
            until = payment_links.get_end(reservation, now=request.now)
            preview.facts.append(("Held until", formatting.format_datetime(reservation, until)))
            return preview
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
            until = payment_links.send_link(
                draft, base_url=request.base_url, by=request.by, now=request.now
            )
            return (
                f"The link is sent within a minute. The room is held for"
                f" {draft.user.get_full_name()} until {formatting.format_datetime(draft, until)}."
            )
        if way == SAVED_CARD:
            with explains_absent_customer():
                reservation = checkout.charge_saved_card(
                    draft, shown_total=shown_total, by=request.by, now=request.now
                )
        else:
            reservation = checkout.take_manual_payment(
                draft,
                gateway=way,
                reference=request.data.get("reference", ""),
                shown_total=shown_total,
                by=request.by,
                now=request.now,
            )
        status = formatting.format_status(reservation, now=request.now)
        return f"{status}. {confirmation.describe_payments(reservation)}"
