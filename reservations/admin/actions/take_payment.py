"""The action that takes the payment of a draft, in any way (B26)."""

import datetime as dt
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts import roles
from payments import saved_cards
from payments.gateways import declines
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS, TERMINAL
from payments.manual_payments import get_credit_refusal, get_owed_amount
from payments.models import SavedCard
from reservations import availability
from reservations.admin import formatting
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, describe_email
from reservations.admin.actions.forms import ActionForm
from reservations.booking import taking_payment
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook import money
from roombook.errors import CardDeclined, NoSavedCard

SAVED_CARD = "card"


class TakePaymentForm(ActionForm):
    """How the customer pays. A draft that costs nothing needs no data."""

    way = forms.ChoiceField(label="Way of payment", widget=UnfoldAdminSelectWidget)
    reference = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="Card terminal: the number of the slip. On account: the order number.",
    )
    consent = forms.BooleanField(
        label="The customer agrees that the saved card is charged",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    def prepare(self) -> None:
        if not self.reservation.total_cost:
            self.fields.clear()
            return
        card = get_saved_card(self.reservation, now=self.now)
        ways = [(gateway.name, gateway.label) for gateway in MANUAL_GATEWAYS.values()]
        if not self._may_charge_account():
            ways.remove((ACCOUNT.name, ACCOUNT.label))
        if card is None:
            del self.fields["consent"]
        else:
            ways.append((SAVED_CARD, f"Saved card, {card.brand} ending {card.last4}"))
        field: Any = self.fields["way"]
        field.choices = ways
        self.initial = {"way": TERMINAL.name, **self.initial}

    def _may_charge_account(self) -> bool:
        center = self.reservation.room.center_id
        may = roles.has_permission(self.user, roles.TAKE_ON_ACCOUNT, center)
        return may and self.reservation.user.credit_limit > 0

    def clean(self) -> None:
        way = self.cleaned_data.get("way")
        if way == TERMINAL.name and not self.cleaned_data.get("reference"):
            self.add_error("reference", "Enter the number of the terminal's slip.")
        if way == SAVED_CARD and not self.cleaned_data.get("consent"):
            self.add_error("consent", "Ask the customer first, and confirm it here.")


class TakePaymentAction(Action):
    name, label, icon = "take-payment", "Take payment", "point_of_sale"
    title, confirm_label = "Take payment", "Take payment and book"
    is_primary = True
    form_class = TakePaymentForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return reservation.is_new and reservation.start > now

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        reservation, way = request.reservation, request.data.get("way")
        answer = availability.evaluate_reservation(
            reservation, now=request.now, for_user=reservation.user
        )
        is_instant = reservation.room.is_live_inventory
        preview = ActionPreview(
            problems=list(answer.staff_texts),
            facts=[
                ("New status", str((Status.CONFIRMED if is_instant else Status.PENDING).label)),
                ("Price", money.format_amount(reservation.total_cost)),
                describe_email(reservation, "with the bill"),
            ],
            expected_amount=reservation.total_cost,
        )
        if way == ACCOUNT.name:
            customer = reservation.user
            owed = money.format_amount(get_owed_amount(customer))
            limit = money.format_amount(customer.credit_limit)
            preview.facts.append(("Owed so far", f"{owed} of at most {limit}"))
            if refusal := get_credit_refusal(customer, reservation.total_cost):
                preview.problems.append(refusal)
        elif way == SAVED_CARD:
            preview.notes.append(
                "If the bank asks the customer for a confirmation, the card is declined."
            )
        return preview

    def execute(self, request: ActionRequest) -> str:
        draft, way = request.reservation, request.data.get("way", "")
        if way == SAVED_CARD:
            try:
                reservation = taking_payment.charge_saved_card(
                    draft, shown_total=request.expected_amount, by=request.by, now=request.now
                )
            except CardDeclined as error:
                if error.message == declines.REQUIRES_ACTION:
                    raise CardDeclined(BANK_ASKS) from error
                raise
        else:
            reservation = taking_payment.take_manual_payment(
                draft,
                gateway=way,
                reference=request.data.get("reference", ""),
                shown_total=request.expected_amount,
                by=request.by,
                now=request.now,
            )
        status = formatting.format_status(reservation, now=request.now)
        return f"{status}. {confirmation.describe_payments(reservation)}"


BANK_ASKS = (
    "The card's bank asks the customer for a confirmation. Nothing was charged. Choose another way"
    " of payment."
)


def get_saved_card(reservation: Reservation, *, now: dt.datetime) -> SavedCard | None:
    """The customer's saved card, if it can be charged."""
    try:
        return saved_cards.get_usable_saved_card(reservation.user, now=now)
    except NoSavedCard:
        return None
