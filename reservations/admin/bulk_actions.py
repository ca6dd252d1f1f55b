"""The actions of the reservation list, which take each reservation separately."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts import roles
from accounts.models import User
from reservations.admin.actions import ACTIONS
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, format_error
from reservations.admin.formatting import format_place_and_time, get_reservation_url
from reservations.admin.reservation_page import parse_expected_amount
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.errors import DomainError


class BulkActionsMixin(ModelAdminBase):
    """The list actions of the ModelAdmin. Comes before ModelAdmin in the bases."""

    actions = ("approve", "decline", "cancel", "mark_no_show")

    @admin.action(description="Approve requests", permissions=["change"])
    def approve(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._run(request, rows, "approve", ACTIONS["approve"])

    @admin.action(description="Decline requests", permissions=["change"])
    def decline(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._run(request, rows, "decline", ACTIONS["decline"])

    @admin.action(description="Cancel (shows the refund first)", permissions=["change"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._run(request, rows, "cancel", ACTIONS["cancel"])

    @admin.action(description="Mark as no-show", permissions=["change"])
    def mark_no_show(
        self, request: HttpRequest, rows: QuerySet[Reservation]
    ) -> HttpResponse | None:
        return self._run(request, rows, "mark_no_show", ACTIONS["no-show"])

    def _run(
        self, request: HttpRequest, rows: QuerySet[Reservation], method: str, action: Action
    ) -> HttpResponse | None:
        """Show a preview of each reservation. Once it is confirmed, take one after the other."""
        reservations = list(
            rows.select_related("room__center", "room__rate", "user", "promo_code").order_by("pk")
        )
        if request.POST.get("confirmed"):
            for reservation in reservations:
                _execute(request, action, reservation)
            return None
        previews = [_build_preview(action, each, roles.get_staff(request)) for each in reservations]
        title = action.title if len(previews) == 1 else action.title.replace("this", "each")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "action": action,
            "method": method,
            "previews": previews,
            "possible": sum(not each["problems"] for each in previews),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back_url": reverse("admin:reservations_reservation_changelist"),
        }
        return TemplateResponse(request, "admin/reservations/bulk_action.html", context)


def _execute(request: HttpRequest, action: Action, reservation: Reservation) -> None:
    """Take the action, or say why not; the other reservations are not affected."""
    staff = roles.get_staff(request)
    if refusal := _get_refusal(action, reservation, staff):
        messages.error(request, f"{reservation}: {refusal} Nothing was changed.")
        return
    action_request = ActionRequest(
        reservation,
        by=staff,
        now=timezone.now(),
        expected_amount=parse_expected_amount(request, f"expected_amount_{reservation.pk}"),
    )
    try:
        message = action.execute(action_request)
    except DomainError as error:
        messages.error(request, f"{reservation}: {format_error(error)}")
    else:
        messages.success(request, f"{reservation}: {message}")


def _build_preview(action: Action, reservation: Reservation, staff: User) -> dict[str, Any]:
    if refusal := _get_refusal(action, reservation, staff):
        preview = ActionPreview(problems=[refusal])
    else:
        preview = action.preview(ActionRequest(reservation, by=staff, now=timezone.now()))
    return {
        "reservation": reservation,
        "url": get_reservation_url(reservation.pk),
        "place_and_time": format_place_and_time(reservation),
        "facts": preview.facts,
        "expected_amount": preview.expected_amount,
        "problems": preview.problems,
    }


def _get_refusal(action: Action, reservation: Reservation, staff: User) -> str:
    """Why the action is not offered for this reservation, or "" if it is."""
    if not action.is_permitted(staff, reservation):
        return "You may not do this at this center."
    if not action.is_available(reservation, now=timezone.now()):
        return f"Not possible, the status is {Status(reservation.status).label}."
    return ""
