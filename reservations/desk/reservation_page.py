"""The page of a reservation, and a page for each action on it."""

import datetime as dt
from functools import partial

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.forms import BoundField
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from accounts import roles
from accounts.act import Act
from payments.gateways.manual import TERMINAL
from payments.manual_payments import find_missing_reference
from reservations.booking.notes import add_note
from reservations.desk import reservation_details
from reservations.desk.action_forms import ActionForm
from reservations.desk.actions import ACTIONS
from reservations.desk.find_room import read_choice
from reservations.desk.notes import handle_note, posts_note
from reservations.desk.previews import Action, ActionPreview, list_problems
from reservations.display import format_status, get_reservation_url
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.model_admin import is_fragment_request, redirect_not_found
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.backoffice.widgets import StaffTextField
from roombook.errors import DomainError, InvalidRequest
from roombook.ids import parse_id
from roombook.middleware import get_base_url


class ReservationPageMixin(ModelAdminBase):
    """The page of a reservation and its actions. Comes before ModelAdmin in the bases."""

    def get_urls(self) -> list[URLPattern]:
        action_url = path(
            "<path:object_id>/step/<slug:name>/",
            self.admin_site.admin_view(self.action_view),
            name="reservations_reservation_action",
        )
        return [action_url, *super().get_urls()]

    def get_reservation(self, request: HttpRequest, object_id: str) -> Reservation | None:
        """The reservation with that id, if the user may see it."""
        rows = self.get_queryset(request).select_related(
            "room__center", "room__rate", "user", "promo_code", "partner", "created_by"
        )
        reservation: Reservation | None = rows.filter(pk=parse_id(unquote(object_id)) or 0).first()
        return reservation

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show the reservation, or a summary of it next to the timeline. A POST is about a note.

        There is no other form: each action has a page of its own.
        """
        reservation = self.get_reservation(request, object_id)
        if reservation is None:
            return redirect_not_found(request)
        if not self.has_view_permission(request, reservation):
            raise PermissionDenied
        staff, now = roles.get_staff(request), timezone.now()
        if posts_note(request):
            show_page = partial(self.change_view, object_id=object_id)
            return handle_note(request, reservation, show_page, now=now)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if is_fragment_request(request):
            context = reservation_details.build_summary_context(reservation, staff, now=now)
            template = "admin/reservations/reservation_summary.html"
            return TemplateResponse(request, template, context)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": reservation,
            "title": str(reservation),
            **reservation_details.build_context(reservation, staff, now=now),
            "base_url": get_base_url(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/reservations/reservation.html", context)

    def action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Show the preview of an action. Once it is confirmed, execute it."""
        action, reservation = ACTIONS.get(name), self.get_reservation(request, object_id)
        if action is None or reservation is None:
            raise Http404
        staff, now = roles.get_staff(request), timezone.now()
        if not action.is_permitted(staff, reservation):
            raise PermissionDenied
        if not action.is_available(reservation, now=now):
            status = format_status(reservation, now=now)
            if reservation.is_checked_in:
                status += ", checked in"
            text = (
                f"{action.label} is not possible: {reservation} is {status}. Nothing was changed."
            )
            messages.error(request, text + _keep_slip(request, action, reservation, now))
            return redirect(_get_next_url(request, reservation))
        act, is_post = Act(staff, now, is_staff=True), request.method == "POST"
        data = read_choice(request.POST) if is_post else None
        form = action.form_class(data, reservation=reservation, act=act)
        complete_form, preview = _get_complete_form(form), None
        if complete_form is not None:
            complete_form.base_url = get_base_url(request)
            if request.POST.get("confirmed"):
                is_done = execute(request, action, complete_form)
                if is_done and action.leads_to_next_request and "next" not in request.POST:
                    pending = Reservation.objects.filter(
                        roles.get_center_filter(staff, action.permission), status=Status.PENDING
                    )
                    reservation = pending.order_by("start", "pk").first() or reservation
                return redirect(_get_next_url(request, reservation))
            preview = action.preview(complete_form)
        elif kept := _keep_slip(request, action, reservation, now):
            messages.error(request, kept.strip())
        return self._render_action(request, action, form, preview)

    def _render_action(
        self, request: HttpRequest, action: Action, form: ActionForm, preview: ActionPreview | None
    ) -> HttpResponse:
        reservation = form.reservation
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": reservation,
            "title": action.title,
            "reservation": reservation,
            "now": form.now,
            "action": action,
            "form": form,
            "media": self.media + form.media,
            "preview": preview,
            "submitted": get_submitted_values(form),
            "open_fields": _get_open_fields(form),
            "back_url": get_reservation_url(reservation.pk),
        }
        template = "action.html"
        if is_fragment_request(request):
            template = "action_panel.html" if "in_panel" in request.POST else "action_preview.html"
        return TemplateResponse(request, f"admin/reservations/{template}", context)


def _get_next_url(request: HttpRequest, reservation: Reservation) -> str:
    """The page that the action was taken on, if it names itself, else that of the reservation."""
    url = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(url, None, require_https=request.is_secure())
    return url if is_ours else get_reservation_url(reservation.pk)


def execute(request: HttpRequest, action: Action, form: ActionForm) -> bool:
    """Take the action, and show the user what was done, or why it was not."""
    reservation = form.reservation
    try:
        messages.success(request, f"{reservation}: {action.take(form)}")
    except DomainError as error:
        text = f"{reservation}: {' '.join(list_problems(error))}"
        messages.error(request, text + _keep_slip(request, action, reservation, form.now))
        return False
    return True


def _keep_slip(
    request: HttpRequest, action: Action, reservation: Reservation, now: dt.datetime
) -> str:
    """Keep the number of a slip in a note if its payment was refused (B26.11).

    The terminal has charged the customer already. Returns a sentence that says so, or "". The note
    stays true if staff enter the slip again, and it is recorded.
    """
    if "reference" not in action.form_class.base_fields:
        return ""
    reference = request.POST.get("reference", "").strip()
    is_paid = request.POST.get("confirmed") and request.POST.get("way") == TERMINAL.name
    if not is_paid or find_missing_reference(TERMINAL.name, reference):
        return ""
    if reservation.payments.filter(gateway=TERMINAL.name, reference=reference).exists():
        return ""  # The first click has recorded it.
    try:
        text = StaffTextField(max_length=200).clean(reference)
        add_note(
            reservation,
            f"Card terminal, slip {text}: it was entered when “{action.label}” was refused.",
            by=roles.get_staff(request),
            now=now,
        )
    except (ValidationError, InvalidRequest):
        return ""
    return " A note keeps the number of the slip: return the money, or take the payment again."


def _get_complete_form(form: ActionForm) -> ActionForm | None:
    """The form with its data, or None if they are incomplete or invalid.

    A form that requires nothing is complete at once, so the page can show a preview.
    """
    if not form.is_bound:
        if any(field.required for field in form.fields.values()):
            return None
        form = type(form)({}, reservation=form.reservation, act=form.act)
    return form if form.is_valid() else None


def get_submitted_values(form: ActionForm) -> list[tuple[str, str]]:
    """The submitted values, which the confirmation sends again."""
    return [(name, form.data[name]) for field in form for name in _list_names(field)]


def _get_open_fields(form: ActionForm) -> list[BoundField]:
    """The visible fields that were not submitted."""
    return [field for field in form.visible_fields() if not _list_names(field)]


def _list_names(field: BoundField) -> list[str]:
    """The submitted names of a field, which has several if it has several inputs."""
    name = field.html_name
    return [each for each in field.form.data if each == name or each.startswith(f"{name}_")]
