"""The forms of the actions on a reservation."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.models import User
from reservations.booking import cancellation, drafts
from reservations.booking.cancellation import RefundDecision, get_override_refusal
from reservations.desk.forms import MAX_ADJUSTMENT, LocalTimeField, localize_input
from reservations.models import PriceAdjustment, RefundOverride, Reservation
from reservations.notifications.emails import MAX_MESSAGE_LENGTH
from reservations.pricing import bill
from roombook import dates, money
from roombook.backoffice.widgets import StaffTextField


class ActionForm(forms.Form):
    """The form of an action; most actions need no data."""

    # Whether the initial data are complete, so that the page can show a preview at once.
    is_complete = False

    def __init__(
        self, *args: Any, reservation: Reservation, user: User, now: dt.datetime, **kwargs: Any
    ) -> None:
        self.reservation, self.user, self.now = reservation, user, now
        super().__init__(*args, **kwargs)
        self.prepare()

    @property
    def plain_fields(self) -> list[forms.BoundField]:
        """The visible fields that have no part of the page of their own."""
        return self.visible_fields()

    def prepare(self) -> None:
        """Set initial data, and adapt the fields to the reservation and the user."""


class PriceAdjustmentForm(ActionForm):
    """An amount that staff add to a price or take off it."""

    amount = forms.DecimalField(
        min_value=-MAX_ADJUSTMENT,
        max_value=MAX_ADJUSTMENT,
        max_digits=10,
        decimal_places=2,
        help_text=PriceAdjustment._meta.get_field("amount").help_text,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "text", "autocomplete": "off"}),
    )
    reason = StaffTextField(
        max_length=255,
        help_text="The bill shows it.",
    )

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
        latest = drafts.get_latest_hold_end(self.reservation, now=self.now).astimezone(zone)
        self.initial = {"until": latest.replace(tzinfo=None)}
        self.fields[
            "until"
        ].help_text = (
            f"Local time of the center; {dates.format_datetime(latest, zone)} at the latest."
        )

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
        """Add the decision about the refund to the data, if there is one."""
        data = {**(super().clean() or {}), "decision": None}
        if data.get("everything") or data.get("refund") is not None:
            amount = None if data.get("everything") else data["refund"]
            data["decision"] = RefundDecision(amount, data.get("reason", ""))
        return data
