"""The forms of the actions on a reservation, apart from those that change a booking."""

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts import roles
from accounts.act import Act
from payments import saved_cards
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS, TERMINAL
from payments.manual_payments import find_missing_reference
from payments.models import SavedCard
from reservations.booking import cancellation, drafts
from reservations.booking.cancellation import OVERRIDE_REFUND, RefundDecision, get_override_refusal
from reservations.desk.find_room import FoundRooms
from reservations.desk.forms import MAX_ADJUSTMENT, LocalTimeField, localize_input
from reservations.models import PriceAdjustment, RefundOverride, Reservation
from reservations.notifications.emails import MAX_MESSAGE_LENGTH
from reservations.pricing import bill
from roombook import dates, money
from roombook.backoffice.widgets import StaffTextField
from roombook.errors import InvalidRequest, NoSavedCard

# Ways of payment next to those of MANUAL_GATEWAYS.
SAVED_CARD, LINK = "card", "link"


class ActionForm(forms.Form):
    """What a member of staff asks for: the form of an action, whose most have no field.

    Its cleaned data are arguments of the command.
    """

    # Whether the initial data are complete, so that the page can show a preview at once.
    is_complete = False
    # The URL of this service, without a slash at the end.
    base_url = ""

    def __init__(
        self,
        *args: Any,
        reservation: Reservation,
        act: Act,
        siblings: Sequence["ActionForm"] | None = None,
        **kwargs: Any,
    ) -> None:
        """`siblings` are the forms of the reservations before it, if there are several."""
        self.reservation, self.siblings = reservation, siblings
        self.act, self.user, self.now = act, act.staff, act.now
        super().__init__(*args, **kwargs)
        self.prepare()

    @property
    def plain_fields(self) -> list[forms.BoundField]:
        """The visible fields that have no part of the page of their own."""
        return self.visible_fields()

    def prepare(self) -> None:
        """Set initial data, and adapt the fields to the reservation and the user."""

    def find_instead(self) -> FoundRooms | None:
        """Find what is free instead of a room and time that are not available."""
        return None

    @property
    def expected_amount(self) -> Decimal | None:
        """The amount that the preview has shown, which may be one of several."""
        name = f"expected_amount_{self.reservation.pk}"
        return self.get_expected(name if name in self.data else "expected_amount")

    def get_expected(self, name: str) -> Decimal | None:
        """A number that was confirmed. Anything invalid becomes -1, which equals none of them."""
        if not self.data.get("confirmed") or name not in self.data:
            return None
        try:
            # Comparing a signaling NaN raises an exception: this field refuses it.
            return Decimal(forms.DecimalField().clean(self.data[name]))
        except forms.ValidationError:
            return Decimal(-1)

    def require_shown_amount(self) -> Decimal:
        """Return the expected amount. Raises InvalidRequest if no preview has shown one."""
        if self.expected_amount is None:
            problem = "The amount that you have seen is missing. Please open the page again."
            raise InvalidRequest({"expected_amount": problem})
        return self.expected_amount


class PriceAdjustmentForm(ActionForm):
    """An amount that staff add to a price or take off it."""

    amount = forms.DecimalField(
        min_value=-MAX_ADJUSTMENT,
        max_value=MAX_ADJUSTMENT,
        max_digits=10,
        decimal_places=2,
        help_text=PriceAdjustment._meta.get_field("amount").help_text,
        widget=UnfoldAdminTextInputWidget({"inputmode": "text", "autocomplete": "off"}),
    )
    reason = StaffTextField(max_length=255, help_text="The bill shows it.")

    def prepare(self) -> None:
        center, amount = self.reservation.room.center, self.fields["amount"]
        if not self.reservation.is_new:
            amount.help_text = (
                "Negative: the reservation is paid, so its price can only be reduced."
            )
        amount.help_text += " Tax included." if center.prices_include_tax else " Before tax."

    def clean_amount(self) -> Decimal:
        amount: Decimal = self.cleaned_data["amount"]
        if not amount:
            raise forms.ValidationError("The amount must not be 0.")
        if money.round_amount(amount) != amount:
            raise forms.ValidationError("The amount has too many decimal places.")
        return amount


class HoldExtensionForm(ActionForm):
    """The new end of a hold."""

    is_complete = True

    until = LocalTimeField(label="Hold until")

    def prepare(self) -> None:
        zone = self.reservation.room.center.zone
        latest = drafts.get_latest_hold_end(self.reservation, now=self.now)
        self.initial = {"until": latest.astimezone(zone).replace(tzinfo=None)}
        latest_text = dates.format_datetime(latest, zone)
        help_text = f"Local time of the center; {latest_text} at the latest."
        self.fields["until"].help_text = help_text

    def clean_until(self) -> dt.datetime:
        return localize_input(self.cleaned_data["until"], self.reservation.room.center)


class MessageForm(ActionForm):
    """A message to the customer, which is added to the e-mail."""

    message = StaffTextField(
        label="Message to the customer",
        max_length=MAX_MESSAGE_LENGTH,
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 4}),
        help_text="Plain text, for the e-mail. Leave empty to send it without.",
    )


class CancellationForm(MessageForm):
    """Another refund than the policy's, for those who may override it, and a message."""

    refund = forms.DecimalField(
        max_digits=10,
        decimal_places=2,
        required=False,
        widget=UnfoldAdminTextInputWidget({"inputmode": "decimal", "autocomplete": "off"}),
    )
    everything = forms.BooleanField(
        label="Refund everything, because the center cannot host",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )
    reason = StaffTextField(
        label="Reason for this refund",
        max_length=RefundOverride._meta.get_field("reason").max_length,
        required=False,
        help_text="For the history and the reports. The customer does not see it.",
    )
    field_order = ("refund", "everything", "reason", "message")

    def prepare(self) -> None:
        if self.siblings is not None:
            del self.fields["refund"]
            # Each reservation is checked for its center when it is previewed.
            if not roles.has_permission(self.user, OVERRIDE_REFUND):
                del self.fields["everything"], self.fields["reason"]
            return
        outcome = cancellation.get_outcome(self.reservation, now=self.now)
        if self.reservation.booked_at is None:
            del self.fields["message"]
        center = self.reservation.room.center
        # Also if nothing was charged: then the included hours and the promo code come back.
        has_choice = outcome.left or (outcome.share < 1 and bill.has_benefits(self.reservation))
        if not has_choice or get_override_refusal(self.user, center):
            for name in ("refund", "everything", "reason"):
                del self.fields[name]
            return
        if not outcome.left:
            del self.fields["refund"]
            return
        self.fields["refund"].help_text = (
            f"By the policy {money.format_amount(outcome.refund)}, which is refunded if this is"
            f" empty. At most {money.format_amount(outcome.left)}. Another amount needs a reason."
        )

    def clean(self) -> dict[str, Any]:
        data, decision = self.cleaned_data, None
        if data.get("everything") or data.get("refund") is not None:
            amount = None if data.get("everything") else data["refund"]
            decision = RefundDecision(amount, data.get("reason", ""))
        return {"decision": decision, "message": data.get("message", "")}


# --- How the customer pays, for drafts (B26) and changes (B27) ------------------------------------


class PaymentForm(ActionForm):
    """How the customer pays."""

    way = forms.ChoiceField(label="Way of payment", widget=UnfoldAdminSelectWidget)
    reference = StaffTextField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off"}),
        help_text="Card terminal: the number of the slip. On account: the order number.",
    )
    consent = forms.BooleanField(
        label="The customer agrees that the saved card is charged",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    def prepare_ways(self) -> None:
        """Offer the ways of payment that this customer and this user have."""
        customer, center = self.reservation.user, self.reservation.room.center_id
        ways = [(gateway.name, gateway.label) for gateway in MANUAL_GATEWAYS.values()]
        if not (
            roles.has_permission(self.user, roles.TAKE_ON_ACCOUNT, center)
            and customer.credit_limit > 0
        ):
            ways.remove((ACCOUNT.name, ACCOUNT.label))
        if card := get_saved_card(self.reservation, now=self.now):
            ways.append((SAVED_CARD, f"Saved card, {card.description}"))
        else:
            del self.fields["consent"]
        link = "Payment link by e-mail" if customer.known_email else "Payment link, to copy"
        field: Any = self.fields["way"]
        field.choices = [*ways, (LINK, link)]


class TakePaymentForm(PaymentForm):
    """How the customer pays for a draft. One that costs nothing needs no data."""

    def prepare(self) -> None:
        if not self.reservation.total_cost:
            self.fields.clear()
            return
        self.prepare_ways()
        self.initial = {"way": TERMINAL.name, **self.initial}

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
