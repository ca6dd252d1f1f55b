"""What can be done to several reservations of the list at once, each judged by itself."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from reservations.admin.actions import ACTIONS
from reservations.admin.actions.base import Action, ActionPreview, ActionRequest, format_error
from reservations.admin.formatting import format_place_and_time
from reservations.admin.reservation_page import get_reservation_url, get_staff, parse_expected_total
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.errors import DomainError


class BulkActionsMixin(ModelAdminBase):
    """The part of the ModelAdmin with the actions of the list. Stands before ModelAdmin."""

    actions = ("approve", "decline", "cancel", "mark_no_show")

    @admin.action(description="Approve requests", permissions=["change"])
    def approve(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, ACTIONS["approve"], "approve")

    @admin.action(description="Decline requests", permissions=["change"])
    def decline(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, ACTIONS["decline"], "decline")

    @admin.action(description="Cancel (shows the refund first)", permissions=["change"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, ACTIONS["cancel"], "cancel")

    @admin.action(description="Mark as no-show", permissions=["change"])
    def mark_no_show(
        self, request: HttpRequest, rows: QuerySet[Reservation]
    ) -> HttpResponse | None:
        return self._each(request, rows, ACTIONS["no-show"], "mark_no_show")

    def _each(
        self, request: HttpRequest, rows: QuerySet[Reservation], step: Action, action: str
    ) -> HttpResponse | None:
        """Show what each would come to; once that is confirmed, act on one after the other."""
        reservations = list(
            rows.select_related("room__center", "room__rate", "user", "promo_code").order_by("pk")
        )
        if request.POST.get("confirmed"):
            for reservation in reservations:
                self._act_on(request, step, reservation)
            return None
        previews = [_build_preview(step, each, get_staff(request)) for each in reservations]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": step.question if len(previews) == 1 else step.question.replace("this", "each"),
            "step": step,
            "action": action,
            "previews": previews,
            "possible": sum(not each["problems"] for each in previews),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": reverse("admin:reservations_reservation_changelist"),
        }
        return TemplateResponse(request, "office/steps.html", context)

    def _act_on(self, request: HttpRequest, step: Action, reservation: Reservation) -> None:
        """What cannot be done is told, and stops nobody else."""
        if problem := _get_refusal(step, reservation, get_staff(request)):
            messages.error(request, f"{reservation}: {problem} Nothing was done.")
            return
        asked = ActionRequest(
            reservation,
            by=get_staff(request),
            now=timezone.now(),
            agreed=parse_expected_total(request, f"agreed_{reservation.pk}"),
        )
        try:
            done = step.act(asked)
        except DomainError as error:
            messages.error(request, f"{reservation}: {format_error(error)}")
        else:
            messages.success(request, f"{reservation}: {done}")


def _build_preview(step: Action, reservation: Reservation, by: User) -> dict[str, Any]:
    if problem := _get_refusal(step, reservation, by):
        effect = ActionPreview(problems=[problem])
    else:
        effect = step.shown(ActionRequest(reservation, by=by, now=timezone.now()))
    return {
        "reservation": reservation,
        "address": get_reservation_url(reservation),
        "what": format_place_and_time(reservation),
        "facts": effect.facts,
        "agreed": effect.agreed,
        "problems": effect.problems,
    }


def _get_refusal(step: Action, reservation: Reservation, by: User) -> str:
    """Why this one is not to be had at all, in words; empty where it may be."""
    if not step.may(by, reservation):
        return "You may not do that at this center."
    if not step.is_offered(reservation, now=timezone.now()):
        label = Status(reservation.status).label
        return f"It is {label}: that cannot be done."
    return ""
