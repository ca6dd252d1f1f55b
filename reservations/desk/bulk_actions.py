"""Actions on several reservations, each of which they take separately, and bookings to resolve.

Bookings to resolve lie in closures, or another setting has made them impossible or wrong: on their
page staff cancel or move several at once, or write to them. What fails is listed with its reason,
and stays on the page and in "Needs attention" until the booking is resolved.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from itertools import islice

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget

from accounts import roles
from accounts.act import Act
from accounts.models import User
from centers.models import Closure, MeetingRoom
from reservations import alternatives, availability
from reservations.alternatives import AlternativeSearch
from reservations.booking.amendments import ChangeRequest, RoomSlot
from reservations.desk.action_forms import ActionForm
from reservations.desk.actions import ACTIONS
from reservations.desk.previews import Action, ActionPreview
from reservations.desk.reservation_page import execute, get_submitted_values
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates
from roombook.backoffice.pages import BackofficePages
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id

# A page of bookings, and what one action can change.
MAX_BOOKINGS = 20
# Alternatives are sorted by price, so the next ones rarely help.
MAX_ATTEMPTS = 3
NOTHING_AVAILABLE = "No room that is as large is available for the same price or less."


def run_bulk_action(
    request: HttpRequest,
    site: AdminSite,
    action: Action,
    rows: Iterable[Reservation],
    *,
    submitted: tuple[str, str],
    back_url: str,
    initial: Mapping[str, str] | None = None,
) -> HttpResponse | None:
    """Show a preview of each reservation. Once it is confirmed, take the action on one by one.

    Each has a form with the same data, `initial` at first. `submitted` chooses the action.
    """
    act = Act(roles.get_staff(request), timezone.now(), is_staff=True)
    is_submitted = not request.POST.keys().isdisjoint({"confirmed", *action.form_class.base_fields})
    data = request.POST if is_submitted else initial or {}
    own_forms: list[ActionForm] = []
    for row in rows:
        form = action.form_class(data, reservation=row, act=act, siblings=[*own_forms])
        own_forms.append(form)
    refusals = [_get_refusal(action, each) for each in own_forms]
    if request.POST.get("confirmed"):
        for form, refusal in zip(own_forms, refusals, strict=True):
            if refusal:
                messages.error(request, f"{form.reservation}: {refusal} Nothing was changed.")
            else:
                execute(request, action, form)
        return None
    previews = [
        ActionPreview(form, problems=[refusal]) if refusal else action.preview(form)
        for form, refusal in zip(own_forms, refusals, strict=True)
    ]
    possible = [each for each in previews if not each.problems]
    title = action.title if len(previews) == 1 else action.title.replace("this", "each")
    context = {
        **site.each_context(request),
        "title": title,
        "action": action,
        "form": own_forms[0],
        "previews": previews,
        "possible": len(possible),
        "email": next((each.email for each in possible if each.email), None),
        "submitted": [
            submitted,
            *((ACTION_CHECKBOX_NAME, each.reservation.pk) for each in own_forms),
        ],
        "confirmation": [
            submitted,
            *get_submitted_values(own_forms[0]),
            *(field for each in possible for field in _list_confirmation(each)),
        ],
        "back_url": back_url,
    }
    return TemplateResponse(request, "admin/reservations/bulk_action.html", context)


def _list_confirmation(preview: ActionPreview) -> Iterator[tuple[str, object]]:
    """The fields with which the action is confirmed for one of the reservations."""
    pk, form = preview.form.reservation.pk, preview.form
    yield ACTION_CHECKBOX_NAME, pk
    if preview.expected_amount is not None:
        yield f"expected_amount_{pk}", preview.expected_amount
    if isinstance(form, RelocationForm):
        yield f"slot_{pk}", form.slot_text


def _get_refusal(action: Action, form: ActionForm) -> str:
    """Why the action is not offered for this reservation, or "" if it is."""
    reservation = form.reservation
    if not action.is_permitted(form.user, reservation):
        return "You may not do this at this center."
    if not action.is_available(reservation, now=form.now):
        return f"Not possible, the status is {Status(reservation.status).label}."
    return " ".join(str(error) for errors in form.errors.values() for error in errors)


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
            rows.order_by("pk"),
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


# --- Bookings to resolve -------------------------------------------------------------------------


class RelocationForm(ActionForm):
    """To where each of the selected bookings moves: to the cheapest room, else the nearest time."""

    move_to = forms.ChoiceField(
        label="Move to",
        choices=[
            ("room", "Another room at the same time"),
            ("time", "Another room, or the nearest time within 24 hours"),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="At the same center, at least as large, for the same price or less.",
    )
    slot: RoomSlot | None = None

    def clean(self) -> None:
        row, data = self.reservation, self.cleaned_data
        others = (each for each in self.siblings or () if isinstance(each, RelocationForm))
        taken = [each.slot for each in others if each.is_valid() and each.slot]
        for slot in self._find_slots():
            if any(each.room == slot.room and each.span.overlaps(slot.span) for each in taken):
                continue
            data["change"] = ChangeRequest(
                slot.room.pk, slot.start, slot.end, expected_version=row.version
            )
            preview = RELOCATE.preview(self)
            total = preview.expected_amount
            if not preview.problems and total is not None and total <= row.total_cost:
                self.slot = slot
                break
        # What was confirmed may be taken meanwhile: nobody has seen the next slot.
        if self.data.get(f"slot_{row.pk}", self.slot_text) != self.slot_text or not self.slot:
            raise forms.ValidationError(NOTHING_AVAILABLE)

    @property
    def slot_text(self) -> str:
        return f"{self.slot.room.pk} {self.slot.start} {self.slot.end}" if self.slot else ""

    def _find_slots(self) -> Iterator[RoomSlot]:
        """Find the cheapest rooms at the same time, then the nearest times."""
        row, room = self.reservation, copy(self.reservation.room)
        room.capacity = max(room.capacity, row.number_of_attendees)
        search = AlternativeSearch(room, row.span, (), row.user, self.now)
        has_other_times = self.cleaned_data.get("move_to") == "time"
        found = alternatives.find_at_center(search, has_other_times=has_other_times)
        for each in islice(found, MAX_ATTEMPTS):
            yield RoomSlot(MeetingRoom.objects.get(pk=each.room_id), each.start, each.end)


# The buttons, and the initial data of their forms: the center cannot host.
RELOCATE = replace(ACTIONS["move"], form_class=RelocationForm)
BUTTONS: dict[str, tuple[Action, dict[str, str]]] = {
    "cancel": (ACTIONS["cancel"], {"everything": "on"}),
    "move": (RELOCATE, {"move_to": "room"}),
    "resend": (ACTIONS["resend"], {}),
}


class ClosedBookingPages(BackofficePages):
    """The page of the bookings to resolve."""

    pages = (("in-closures/", "show_bookings", "reservations_in_closures"),)

    def show_bookings(self, request: HttpRequest) -> HttpResponse:
        """List the bookings. A POST previews what becomes of the selected ones, or does it."""
        staff = roles.require_permission(request, roles.VIEW_RESERVATION, roles.CHANGE_RESERVATION)
        now = timezone.now()
        can_change = roles.has_permission(staff, roles.CHANGE_RESERVATION)
        if request.method == "POST" and can_change:
            return self._act(request, staff, now)
        rows = _find_bookings(request, staff, roles.VIEW_RESERVATION, now)
        found = list(rows.order_by("start", "pk")[: MAX_BOOKINGS + 1])
        bookings = found[:MAX_BOOKINGS]
        problems = _describe_problems(bookings)
        context = {
            "title": "Bookings to resolve",
            "can_change": can_change,
            "now": now,
            "bookings": [
                {
                    "reservation": row,
                    "problems": problems[row.pk],
                    "can_change": roles.has_permission(
                        staff, roles.CHANGE_RESERVATION, row.room.center_id
                    ),
                }
                for row in bookings
            ],
            "has_more": len(found) > MAX_BOOKINGS,
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return self.render(request, "admin/reservations/closed_bookings.html", context)

    def _act(self, request: HttpRequest, staff: User, now: dt.datetime) -> HttpResponse:
        """Preview the action for the selected bookings or, once confirmed, take it on each."""
        ids = {parse_id(each) or 0 for each in request.POST.getlist(ACTION_CHECKBOX_NAME)}
        rows = _find_bookings(request, staff, roles.CHANGE_RESERVATION, now)
        bookings = list(rows.filter(pk__in=ids).order_by("start", "pk")[:MAX_BOOKINGS])
        if gone := len(ids) - len(bookings):
            text = "1 selected booking is" if gone == 1 else f"{gone} selected bookings are"
            messages.warning(request, f"{text} resolved already: nothing was changed.")
        if not ids:
            messages.error(request, "Select at least one booking.")
        page, name = None, request.POST.get("do", "")
        if bookings and name in BUTTONS:
            action, initial = BUTTONS[name]
            page = run_bulk_action(
                request,
                self.site,
                action,
                bookings,
                submitted=("do", name),
                back_url=request.get_full_path(),
                initial=initial,
            )
        return page or redirect(request.get_full_path())


def _find_bookings(
    request: HttpRequest, staff: User, permission: str, now: dt.datetime
) -> QuerySet[Reservation]:
    rows = Reservation.objects.filter(roles.get_center_filter(staff, permission))
    if (center := parse_id(request.GET.get("center"))) is not None:
        rows = rows.filter(room__center=center)
    rows = rows.unresolved(now).prefetch_related("room__center__opening_hours")
    return rows.select_related("room__center", "room__rate", "user", "promo_code")


def _describe_problems(bookings: Iterable[Reservation]) -> dict[int, list[str]]:
    """The closures of each booking, with their time, and what else is wrong."""
    rows = list(bookings)
    closures = Closure.objects.filter(center__in={row.room.center_id for row in rows})
    closures = closures.select_related("center").order_by("starts_at", "pk")
    if rows:
        first, last = min(row.start for row in rows), max(row.end for row in rows)
        closures = closures.overlapping(first, last)
    found = list(closures)
    return {
        row.pk: [
            f"{each}, {dates.format_span(each.starts_at, each.ends_at, each.center.zone)}"
            for each in found
            if each.center_id == row.room.center_id
            and each.room_id in {None, row.room_id}
            and each.span.overlaps(row.span)
        ]
        + list(_describe_settings(row))
        for row in rows
    }


def _describe_settings(row: Reservation) -> Iterator[str]:
    room, attendees = row.room, row.number_of_attendees
    yield from (reason.detail for reason in availability.check_state(room))
    if attendees > room.capacity:
        yield f"The room holds {room.capacity} people, and {attendees} are expected."
    if not row.is_outside_hours and availability.is_outside_opening_hours(room, row.span):
        yield "It is outside the opening hours."
    if row.has_former_address:
        yield "The customer knows the former address."


def get_closed_bookings_url(center_id: int | None = None) -> str:
    url = reverse("admin:reservations_in_closures")
    return url if center_id is None else f"{url}?center={center_id}"
