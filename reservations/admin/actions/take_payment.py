"""The action that takes the payment of a draft, in any way (B26)."""

import datetime as dt
from typing import Any

from payments.gateways.manual import TERMINAL
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
from reservations.booking import checkout, payment_links
from reservations.booking.commands import Preview
from reservations.models import BookingChange, Reservation
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook import money


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
        ends = formatting.format_datetime(reservation, until or request.act.now)
        return ActionPreview(facts=[("Would end", ends), ("E-mail to", "Nobody")])

    def report(self, result: Reservation) -> str:
        left = "The room is still held." if result.is_new else "The booking is as it was."
        return f"The payment link is cancelled. {left}"


class SendLinkAgainAction(Action):
    name, label, icon = "send-link-again", "Send payment link again", "forward_to_inbox"
    title, confirm_label = "Send the payment link again", "Send payment link"
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
                f"The link is sent within a minute. The room is held for"
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
        status = formatting.format_status(reservation, now=request.act.now)
        return f"{status}. {confirmation.describe_payments(reservation)}"


def _format_end(reservation: Reservation, until: dt.datetime | None) -> str:
    assert until is not None  # because a link was sent
    return formatting.format_datetime(reservation, until)
