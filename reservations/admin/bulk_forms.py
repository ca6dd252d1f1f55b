"""The forms of actions on several reservations."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts import roles
from accounts.models import User
from reservations.booking.refund_decisions import OVERRIDE_REFUND, RefundDecision
from reservations.models import RefundOverride
from reservations.notifications.emails import MAX_MESSAGE_LENGTH
from roombook.backoffice.widgets import StaffTextField


class BulkMessageForm(forms.Form):
    """A message to the customers, which is added to their e-mails."""

    message = StaffTextField(
        label="Message to the customers",
        max_length=MAX_MESSAGE_LENGTH,
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3}),
        help_text="Plain text, for the e-mail.",
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    @property
    def action_data(self) -> dict[str, Any]:
        """The data that the action takes."""
        return {"message": self.cleaned_data["message"]}

    @property
    def values_text(self) -> str:
        """The values as one text, by which a confirmation names what was previewed."""
        return "\n".join(str(self[name].value() or "") for name in self.fields)


class BulkCancellationForm(BulkMessageForm):
    """The refund of cancellations, for those who may override the policy's, and a message."""

    refund = forms.ChoiceField(
        choices=[("policy", "By the policy"), ("full", "Everything")],
        initial="policy",
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    reason = StaffTextField(
        label="Reason for the refund",
        max_length=RefundOverride._meta.get_field("reason").max_length,
        required=False,
        help_text="For the history and the reports. Needed to refund everything.",
    )
    field_order = ("refund", "reason", "message")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not roles.has_permission(user, OVERRIDE_REFUND):
            del self.fields["refund"], self.fields["reason"]

    @property
    def action_data(self) -> dict[str, Any]:
        decision = None
        if self.cleaned_data.get("refund") == "full":
            decision = RefundDecision(None, self.cleaned_data["reason"])
        return {**super().action_data, "decision": decision}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("refund") == "full" and not data.get("reason") and self.needs_reason():
            self.add_error("reason", "A refund of everything needs a reason.")
        return data

    def needs_reason(self) -> bool:
        return True
