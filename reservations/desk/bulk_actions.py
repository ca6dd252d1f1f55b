"""Actions on several reservations, each of which they take separately."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib import admin, messages
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts import roles
from accounts.act import Act
from reservations.desk.action_forms import ActionForm
from reservations.desk.actions import ACTIONS
from reservations.desk.previews import Action, ActionPreview, ActionRequest
from reservations.desk.reservation_page import execute, get_submitted_values, parse_expected
from reservations.display import format_place_and_time
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.typing_bases import ModelAdminBase


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """The preview of one of several reservations, and what its own form submits, if it has one."""

    reservation: Reservation
    preview: ActionPreview
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def place_and_time(self) -> str:
        return format_place_and_time(self.reservation)

    @property
    def confirmation(self) -> Iterator[tuple[str, object]]:
        """The fields with which the action is confirmed for this reservation."""
        pk, amount = self.reservation.pk, self.preview.expected_amount
        yield ACTION_CHECKBOX_NAME, pk
        if amount is not None:
            yield f"expected_amount_{pk}", amount
        yield from ((f"{pk}-{name}", value) for name, value in self.fields.items())


Propose = Callable[[ActionForm, Sequence[Reservation], Act], Iterable[BulkPreview]]


def run_bulk_action(
    request: HttpRequest,
    site: AdminSite,
    action: Action,
    rows: Sequence[Reservation],
    *,
    submitted: tuple[str, str],
    back_url: str,
    form_class: type[ActionForm] | None = None,
    initial: Mapping[str, str] | None = None,
    propose: Propose | None = None,
) -> HttpResponse | None:
    """Show a preview of each reservation. Once it is confirmed, take the action on one by one.

    One form, with `initial` data, is for all of them: that of the action or, if `propose` finds
    what the action's form submits for each of them, the form of another class. `submitted` chooses
    the action.
    """
    shared_form = form_class or action.form_class
    is_submitted = not request.POST.keys().isdisjoint(shared_form.base_fields)
    act = Act(roles.get_staff(request), timezone.now(), is_staff=True)
    form = shared_form(
        request.POST if is_submitted else initial or {},
        reservation=rows[0],
        act=act,
        is_for_several=True,
    )
    previews: list[BulkPreview] = []
    if form.is_valid() and request.POST.get("confirmed"):
        for row in rows:
            own_form = form
            if propose is not None:
                own_form = action.form_class(
                    request.POST, reservation=row, act=act, prefix=f"{row.pk}"
                )
            _take(request, action, row, own_form, act)
        return None
    if form.is_valid():
        previews += (propose or _preview_each(action))(form, rows, act)
    possible = [each for each in previews if not each.preview.problems]
    selected = [(ACTION_CHECKBOX_NAME, row.pk) for row in rows]
    confirmation = [submitted, *get_submitted_values(form)]
    context = {
        **site.each_context(request),
        "title": action.title if len(rows) == 1 else action.title.replace("this", "each"),
        "action": action,
        "form": form,
        "previews": previews,
        "possible": len(possible),
        "email": next((email for each in possible if (email := each.preview.email)), None),
        "submitted": [submitted, *selected],
        "confirmation": [*confirmation, *(pair for each in possible for pair in each.confirmation)],
        "back_url": back_url,
    }
    return TemplateResponse(request, "admin/reservations/bulk_action.html", context)


def _preview_each(action: Action) -> Propose:
    return lambda form, rows, act: (
        BulkPreview(row, preview_one(action, row, form, act)) for row in rows
    )


def preview_one(action: Action, row: Reservation, form: ActionForm, act: Act) -> ActionPreview:
    if refusal := _get_refusal(action, row, form, act):
        return ActionPreview(problems=[refusal])
    return action.preview(ActionRequest(row, act, form.cleaned_data))


def _take(
    request: HttpRequest, action: Action, row: Reservation, form: ActionForm, act: Act
) -> None:
    """Take the action, or say why not; the other reservations are not affected."""
    if refusal := _get_refusal(action, row, form, act):
        messages.error(request, f"{row}: {refusal} Nothing was changed.")
        return
    amount = parse_expected(request.POST.get(f"expected_amount_{row.pk}"))
    execute(request, action, ActionRequest(row, act, form.cleaned_data, expected_amount=amount))


def _get_refusal(action: Action, reservation: Reservation, form: ActionForm, act: Act) -> str:
    """Why the action is not offered for this reservation, or "" if it is."""
    if not action.is_permitted(act.staff, reservation):
        return "You may not do this at this center."
    if not action.is_available(reservation, now=act.now):
        return f"Not possible, the status is {Status(reservation.status).label}."
    return "" if form.is_valid() else "It was not previewed."


def _build_list_action(name: str, description: str) -> Callable[..., HttpResponse | None]:
    @admin.action(description=description, permissions=["change"])
    def run(
        self: "BulkActionsMixin", request: HttpRequest, rows: QuerySet[Reservation]
    ) -> HttpResponse | None:
        rows = rows.select_related("room__center", "room__rate", "user", "promo_code")
        return run_bulk_action(
            request,
            self.admin_site,
            ACTIONS[name],
            list(rows.order_by("pk")),
            submitted=("action", request.POST["action"]),
            back_url=reverse("admin:reservations_reservation_changelist"),
        )

    return run


class BulkActionsMixin(ModelAdminBase):
    """The list actions of the ModelAdmin. Comes before ModelAdmin in the bases."""

    actions = ("approve", "decline", "cancel", "mark_no_show")
    approve = _build_list_action("approve", "Approve requests")
    decline = _build_list_action("decline", "Decline requests")
    cancel = _build_list_action("cancel", "Cancel (shows the refund first)")
    mark_no_show = _build_list_action("no-show", "Mark as no-show")
