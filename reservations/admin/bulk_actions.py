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
from reservations.admin.actions import STEPS
from reservations.admin.actions.base import Asked, Effect, Step, words
from reservations.admin.formatting import what
from reservations.admin.reservation_page import page_of, shown_sum, staff
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.typing_bases import PagePart
from roombook.errors import DomainError


class ReservationActions(PagePart):
    """The part of the ModelAdmin with the actions of the list. Stands before ModelAdmin."""

    actions = ("approve", "decline", "cancel", "mark_no_show")

    @admin.action(description="Approve requests", permissions=["change"])
    def approve(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, STEPS["approve"], "approve")

    @admin.action(description="Decline requests", permissions=["change"])
    def decline(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, STEPS["decline"], "decline")

    @admin.action(description="Cancel (shows the refund first)", permissions=["change"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Reservation]) -> HttpResponse | None:
        return self._each(request, rows, STEPS["cancel"], "cancel")

    @admin.action(description="Mark as no-show", permissions=["change"])
    def mark_no_show(
        self, request: HttpRequest, rows: QuerySet[Reservation]
    ) -> HttpResponse | None:
        return self._each(request, rows, STEPS["no-show"], "mark_no_show")

    def _each(
        self, request: HttpRequest, rows: QuerySet[Reservation], step: Step, action: str
    ) -> HttpResponse | None:
        """Show what each would come to; once that is confirmed, act on one after the other."""
        reservations = list(
            rows.select_related("room__center", "room__rate", "user", "promo_code").order_by("pk")
        )
        if request.POST.get("confirmed"):
            for reservation in reservations:
                self._act_on(request, step, reservation)
            return None
        previews = [_preview(step, each, staff(request)) for each in reservations]
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

    def _act_on(self, request: HttpRequest, step: Step, reservation: Reservation) -> None:
        """What cannot be done is told, and stops nobody else."""
        if problem := _why_not(step, reservation, staff(request)):
            messages.error(request, f"{reservation}: {problem} Nothing was done.")
            return
        asked = Asked(
            reservation,
            by=staff(request),
            now=timezone.now(),
            agreed=shown_sum(request, f"agreed_{reservation.pk}"),
        )
        try:
            done = step.act(asked)
        except DomainError as error:
            messages.error(request, f"{reservation}: {words(error)}")
        else:
            messages.success(request, f"{reservation}: {done}")


def _preview(step: Step, reservation: Reservation, by: User) -> dict[str, Any]:
    if problem := _why_not(step, reservation, by):
        effect = Effect(problems=[problem])
    else:
        effect = step.shown(Asked(reservation, by=by, now=timezone.now()))
    return {
        "reservation": reservation,
        "address": page_of(reservation),
        "what": what(reservation),
        "facts": effect.facts,
        "agreed": effect.agreed,
        "problems": effect.problems,
    }


def _why_not(step: Step, reservation: Reservation, by: User) -> str:
    """Why this one is not to be had at all, in words; empty where it may be."""
    if not step.may(by, reservation):
        return "You may not do that at this center."
    if not step.is_offered(reservation, now=timezone.now()):
        label = Status(reservation.status).label
        return f"It is {label}: that cannot be done."
    return ""
