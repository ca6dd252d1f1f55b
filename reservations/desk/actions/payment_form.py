"""The fields with which staff choose how a customer pays, for drafts (B26) and changes (B27)."""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts import roles
from accounts.models import User
from payments import saved_cards
from payments.gateways import declines
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.manual_payments import find_missing_reference, get_credit_refusal, get_owed_amount
from payments.models import SavedCard
from reservations.desk.actions.base import ActionPreview
from reservations.desk.actions.forms import ActionForm
from reservations.display import format_datetime
from reservations.models import BookingChange, Reservation
from roombook import money
from roombook.backoffice.widgets import StaffTextField
from roombook.errors import CardDeclined, NoSavedCard

SAVED_CARD, LINK = "card", "link"
SEND_LINK = "Send payment link"
BANK_ASKS = (
    "The card's bank asks the customer for a confirmation. Nothing was charged. Choose another way"
    " of payment."
)


class PaymentForm(ActionForm):
    """How the customer pays."""

    way = forms.ChoiceField(label="Way of payment", widget=UnfoldAdminSelectWidget)
    reference = StaffTextField(
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

    def prepare_ways(self) -> None:
        """Offer the ways of payment that this customer and this user have."""
        card = get_saved_card(self.reservation, now=self.now)
        ways = [(gateway.name, gateway.label) for gateway in MANUAL_GATEWAYS.values()]
        if not self._may_charge_account():
            ways.remove((ACCOUNT.name, ACCOUNT.label))
        if card is None:
            del self.fields["consent"]
        else:
            ways.append((SAVED_CARD, f"Saved card, {card.description}"))
        by_email = self.reservation.user.known_email
        ways.append((LINK, "Payment link by e-mail" if by_email else "Payment link, to copy"))
        field: Any = self.fields["way"]
        field.choices = ways

    def _may_charge_account(self) -> bool:
        center = self.reservation.room.center_id
        may = roles.has_permission(self.user, roles.TAKE_ON_ACCOUNT, center)
        return may and self.reservation.user.credit_limit > 0

    def clean(self) -> None:
        for name, problem in find_missing(self.cleaned_data).items():
            self.add_error(name, problem)


def find_missing(data: Mapping[str, Any]) -> dict[str, str]:
    """What the chosen way of payment needs and was not entered, by field."""
    way = data.get("way", "")
    if missing := find_missing_reference(way, data.get("reference", "")):
        return {"reference": missing}
    if way == SAVED_CARD and not data.get("consent"):
        return {"consent": "Ask the customer first, and confirm it here."}
    return {}


def get_saved_card(reservation: Reservation, *, now: dt.datetime) -> SavedCard | None:
    """The customer's saved card, if it can be charged."""
    try:
        return saved_cards.get_usable_saved_card(reservation.user, now=now)
    except NoSavedCard:
        return None


def describe_way(preview: ActionPreview, customer: User, way: str, amount: Decimal) -> None:
    """Add to the preview what the way of payment means for the customer."""
    if way == ACCOUNT.name:
        owed = money.format_amount(get_owed_amount(customer))
        limit = money.format_amount(customer.credit_limit)
        preview.facts.append(("Owed so far", f"{owed} of at most {limit}"))
        if refusal := get_credit_refusal(customer, amount):
            preview.problems.append(refusal)
    elif way == SAVED_CARD:
        preview.notes.append(
            "If the bank asks the customer for a confirmation, the card is declined."
        )


@contextmanager
def explains_absent_customer() -> Iterator[None]:
    """Say what staff can do if the bank asks for a confirmation of the customer."""
    try:
        yield
    except CardDeclined as error:
        if error.message == declines.REQUIRES_ACTION:
            raise CardDeclined(BANK_ASKS) from error
        raise


def describe_link_email(reservation: Reservation) -> str:
    if not reservation.user.known_email:
        return "Copy the link from the page of the reservation."
    return "The link is sent within a minute."


def describe_sent_link(change: BookingChange) -> str:
    """Say what becomes of a change whose payment link was sent."""
    assert change.link_until is not None
    until = format_datetime(change.reservation, change.link_until)
    return (
        f"{describe_link_email(change.reservation)} The booking changes once it is paid; what it"
        f" changes to is held until {until}."
    )
