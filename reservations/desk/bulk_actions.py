"""Actions on several reservations, each of which they take separately."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts import roles
from accounts.act import Act
from accounts.models import User
from reservations.booking.cancellation import OVERRIDE_REFUND, RefundDecision
from reservations.desk.actions import ACTIONS
from reservations.desk.actions.base import Action, ActionPreview, ActionRequest
from reservations.desk.reservation_page import execute, parse_expected_amount
from reservations.display import format_place_and_time, get_reservation_url
from reservations.models import RefundOverride, Reservation
from reservations.models.status import Status
from reservations.notifications.emails import MAX_MESSAGE_LENGTH
from roombook.backoffice.typing_bases import ModelAdminBase
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


FORMS: dict[str, type[BulkMessageForm]] = {
    "decline": BulkMessageForm,
    "cancel": BulkCancellationForm,
}


def _build_bulk_action(name: str, description: str) -> Callable[..., HttpResponse | None]:
    @admin.action(description=description, permissions=["change"])
    def run(
        self: "BulkActionsMixin", request: HttpRequest, rows: QuerySet[Reservation]
    ) -> HttpResponse | None:
        return self._run(request, rows, ACTIONS[name])

    return run


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """The preview of one of several reservations. `target` is sent back with the confirmation."""

    reservation: Reservation
    preview: ActionPreview
    target: object = None

    @property
    def url(self) -> str:
        return get_reservation_url(self.reservation.pk)

    @property
    def place_and_time(self) -> str:
        return format_place_and_time(self.reservation)


def build_bulk_context(
    action: Action,
    previews: Sequence[BulkPreview],
    *,
    submitted: Iterable[tuple[str, str]],
    back_url: str,
) -> dict[str, object]:
    """The context of bulk_action.html, apart from its title, with the e-mail of one preview.

    ``submitted`` is sent again with the confirmation.
    """
    return {
        "action": action,
        "previews": previews,
        "possible": sum(not each.preview.problems for each in previews),
        "email": next((email for each in previews if (email := each.preview.email)), None),
        "submitted": submitted,
        "checkbox_name": ACTION_CHECKBOX_NAME,
        "back_url": back_url,
    }


class BulkActionsMixin(ModelAdminBase):
    """The list actions of the ModelAdmin. Comes before ModelAdmin in the bases."""

    actions = ("approve", "decline", "cancel", "mark_no_show")
    approve = _build_bulk_action("approve", "Approve requests")
    decline = _build_bulk_action("decline", "Decline requests")
    cancel = _build_bulk_action("cancel", "Cancel (shows the refund first)")
    mark_no_show = _build_bulk_action("no-show", "Mark as no-show")

    def _run(
        self, request: HttpRequest, rows: QuerySet[Reservation], action: Action
    ) -> HttpResponse | None:
        """Show a preview of each reservation. Once it is confirmed, take one after the other."""
        staff = roles.get_staff(request)
        reservations = list(
            rows.select_related("room__center", "room__rate", "user", "promo_code").order_by("pk")
        )
        form = _build_form(request, action, staff)
        is_valid = form is None or not form.is_bound or form.is_valid()
        data = form.action_data if form and form.is_bound and is_valid else {}
        if request.POST.get("confirmed") and is_valid:
            if _was_previewed(request, form):
                for reservation in reservations:
                    execute_one(request, action, reservation, staff, data)
                return None
            messages.warning(request, "Nothing was changed yet: this preview is new.")
        previews = [
            BulkPreview(each, preview_one(action, each, staff, data)) for each in reservations
        ]
        title = action.title if len(previews) == 1 else action.title.replace("this", "each")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            **build_bulk_context(
                action,
                previews,
                submitted=[("action", request.POST["action"])],
                back_url=reverse("admin:reservations_reservation_changelist"),
            ),
            "form": form,
        }
        if not is_valid:
            context["possible"] = 0
        return TemplateResponse(request, "admin/reservations/bulk_action.html", context)


def _build_form(request: HttpRequest, action: Action, staff: User) -> BulkMessageForm | None:
    """The form of the action, if it has one: bound if the page with the form was submitted."""
    form_class = FORMS.get(action.name)
    if form_class is None:
        return None
    is_submitted = request.POST.keys() & {"previewed", "confirmed"}
    return form_class(request.POST if is_submitted else None, user=staff)


def _was_previewed(request: HttpRequest, form: BulkMessageForm | None) -> bool:
    """Whether the form is the same as in the preview; otherwise a new preview is shown."""
    if form is None:
        return True
    previewed = request.POST.get("previewed", form.values_text)
    return previewed.split() == form.values_text.split()


def execute_one(
    request: HttpRequest,
    action: Action,
    reservation: Reservation,
    staff: User,
    data: Mapping[str, object],
) -> None:
    """Take the action, or say why not; the other reservations are not affected."""
    if refusal := _get_refusal(action, reservation, staff):
        messages.error(request, f"{reservation}: {refusal} Nothing was changed.")
        return
    act = Act(staff, timezone.now(), is_staff=True)
    amount = parse_expected_amount(request, f"expected_amount_{reservation.pk}")
    execute(request, action, ActionRequest(reservation, act, data, expected_amount=amount))


def preview_one(
    action: Action,
    reservation: Reservation,
    staff: User,
    data: Mapping[str, object],
) -> ActionPreview:
    if refusal := _get_refusal(action, reservation, staff):
        return ActionPreview(problems=[refusal])
    act = Act(staff, timezone.now(), is_staff=True)
    return action.preview(ActionRequest(reservation, act, data))


def _get_refusal(action: Action, reservation: Reservation, staff: User) -> str:
    """Why the action is not offered for this reservation, or "" if it is."""
    if not action.is_permitted(staff, reservation):
        return "You may not do this at this center."
    if not action.is_available(reservation, now=timezone.now()):
        return f"Not possible, the status is {Status(reservation.status).label}."
    return ""
