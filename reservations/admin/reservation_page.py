"""The page of a reservation, and a page for each step that can be taken with it."""

from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from accounts.models import User
from reservations.admin import reservation_details as page
from reservations.admin.actions import ACTIONS
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, format_error
from reservations.admin.actions.forms import ActionForm
from reservations.admin.formatting import format_place_and_time
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.errors import DomainError
from roombook.ids import parse_id


class ReservationPageMixin(ModelAdminBase):
    """The part of the ModelAdmin that shows one and acts on it. Stands before ModelAdmin."""

    def get_urls(self) -> list[URLPattern]:
        own = path(
            "<path:object_id>/step/<slug:name>/",
            self.admin_site.admin_view(self.step_view),
            name="reservations_reservation_step",
        )
        return [own, *super().get_urls()]

    def _one(self, request: HttpRequest, object_id: str) -> Reservation | None:
        """The reservation of that number, if it is one of theirs."""
        rows = self.get_queryset(request).select_related(
            *("room__center", "room__rate", "user", "promo_code", "partner", "created_by")
        )
        found: Reservation | None = rows.filter(pk=parse_id(unquote(object_id)) or 0).first()
        return found

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """All that is known of it. Nothing is typed here: each step has a page of its own."""
        reservation = self._one(request, object_id)
        if reservation is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]  # Django's own
                request, self.opts, object_id
            )
        if not self.has_view_permission(request, reservation):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": reservation,
            "title": str(reservation),
            "zone": reservation.room.center.zone,
            **page.build_context(reservation, get_staff(request), now=timezone.now()),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "office/reservation.html", context)

    def step_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """What a step would do, and, once that is confirmed, the doing."""
        step, reservation = ACTIONS.get(name), self._one(request, object_id)
        if step is None or reservation is None:
            raise Http404
        if not step.may(get_staff(request), reservation):
            raise PermissionDenied
        now = timezone.now()
        if not step.is_offered(reservation, now=now):
            label = Status(reservation.status).label
            text = f"{step.label}: that cannot be done. {reservation} is {label}. Nothing was done."
            messages.error(request, text)
            return redirect(get_reservation_url(reservation))
        form = step.form_class(
            request.POST if request.method == "POST" else None,
            reservation=reservation,
            user=get_staff(request),
            now=now,
        )
        typed = _get_cleaned_data(form, request)
        if typed is not None and request.POST.get("confirmed"):
            return self._act(request, step, reservation, typed)
        effect = None
        if typed is not None:
            effect = step.shown(
                ActionRequest(reservation, by=get_staff(request), now=now, typed=typed)
            )
        return self._step_page(request, step, reservation, form, effect)

    def _act(
        self, request: HttpRequest, step: Action, reservation: Reservation, typed: dict[str, Any]
    ) -> HttpResponse:
        asked = ActionRequest(
            reservation,
            by=get_staff(request),
            now=timezone.now(),
            typed=typed,
            was=parse_expected_total(request, "was"),
            agreed=parse_expected_total(request, "agreed"),
        )
        try:
            done = step.act(asked)
        except DomainError as error:
            messages.error(request, f"{reservation}: {format_error(error)}")
        else:
            messages.success(request, f"{reservation}: {done}")
        return redirect(get_reservation_url(reservation))

    def _step_page(
        self,
        request: HttpRequest,
        step: Action,
        reservation: Reservation,
        form: ActionForm,
        effect: ActionPreview | None,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": reservation,
            "title": step.question,
            "reservation": reservation,
            "status": Status(reservation.status).label,
            "what": format_place_and_time(reservation),
            "step": step,
            "form": form,
            "media": self.media + form.media,
            "effect": effect,
            "typed": _get_submitted_values(form),
            "back": get_reservation_url(reservation),
        }
        is_fragment = request.headers.get("X-Requested-With") == "fetch"
        template = "office/effect.html" if is_fragment else "office/step.html"
        return TemplateResponse(request, template, context)


def get_reservation_url(reservation: Model) -> str:
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def get_staff(request: HttpRequest) -> User:
    """Who is at work; the admin has let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


def parse_expected_total(request: HttpRequest, name: str) -> Decimal | None:
    """A sum that the page showed; nonsense is none that could come true."""
    text = request.POST.get(name)
    if text is None:
        return None
    try:
        shown = Decimal(text)
    except InvalidOperation:
        return Decimal(-1)
    # One kind of "not a number" cannot even be compared.
    return shown if shown.is_finite() else Decimal(-1)


def _get_cleaned_data(form: ActionForm, request: HttpRequest) -> dict[str, Any] | None:
    """What was typed, None where that is not all or not right. A step that asks for nothing is
    judged at once."""
    if not form.fields:
        return {}
    return form.cleaned_data if form.is_bound and form.is_valid() else None


def _get_submitted_values(form: ActionForm) -> list[tuple[str, str]]:
    """What was typed, as it is to be sent once more with the confirmation."""
    if not form.is_bound:
        return []
    names = (
        name
        for field in form
        for name in (
            [field.html_name]
            if field.html_name in form.data
            else [f"{field.html_name}_{part}" for part in (0, 1)]
        )
    )
    return [(name, form.data[name]) for name in names if name in form.data]
