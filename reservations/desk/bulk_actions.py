"""Actions on several reservations, each of which they take separately, and bookings to resolve.

Bookings to resolve lie in closures, or another setting has made them impossible or wrong: on their
page staff cancel or move several at once, or write to them. What fails is listed with its reason,
and stays on the page and in "Needs attention" until the booking is resolved.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget

from accounts import roles
from accounts.act import Act
from accounts.models import User
from centers.models import Closure, MeetingRoom
from reservations import alternatives, availability
from reservations.alternatives import AlternativeSearch
from reservations.booking.amendments import RoomSlot
from reservations.desk.action_forms import ActionForm
from reservations.desk.actions import ACTIONS
from reservations.desk.booking_form import build_slot_fields
from reservations.desk.previews import Action, ActionPreview
from reservations.desk.reservation_page import execute, get_submitted_values
from reservations.display import format_customer, format_place_and_time, render_status_badge
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates, money
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id

# A page of bookings, and what one action can change.
MAX_BOOKINGS = 20
# Alternatives are sorted by price, so the next ones rarely help.
MAX_ATTEMPTS = 3
NOTHING_AVAILABLE = "No room that is as large is available for the same price or less."


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


Propose = Callable[[ActionForm, Sequence[Reservation]], Iterable[BulkPreview]]


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
    data = request.POST if is_submitted else initial or {}
    form = shared_form(data, reservation=rows[0], act=act, is_for_several=True)
    if form.is_valid() and request.POST.get("confirmed"):
        for row in rows:
            prefix = f"{row.pk}" if propose else None
            own_form = action.form_class(
                request.POST, reservation=row, act=act, is_for_several=True, prefix=prefix
            )
            if refusal := _get_refusal(action, own_form):
                messages.error(request, f"{row}: {refusal} Nothing was changed.")
            else:
                execute(request, action, own_form)
        return None
    previews: list[BulkPreview] = []
    if form.is_valid():
        previews += (propose or _preview_each(action))(form, rows)
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
    def preview(form: ActionForm, rows: Sequence[Reservation]) -> Iterator[BulkPreview]:
        for row in rows:
            own_form = type(form)(form.data, reservation=row, act=form.act, is_for_several=True)
            yield BulkPreview(row, preview_one(action, own_form))

    return preview


def preview_one(action: Action, form: ActionForm) -> ActionPreview:
    if refusal := _get_refusal(action, form):
        return ActionPreview(form, problems=[refusal])
    return action.preview(form)


def _get_refusal(action: Action, form: ActionForm) -> str:
    """Why the action is not offered for this reservation, or "" if it is."""
    reservation = form.reservation
    if not action.is_permitted(form.user, reservation):
        return "You may not do this at this center."
    if not action.is_available(reservation, now=form.now):
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


# --- Bookings to resolve -------------------------------------------------------------------------


class RelocationForm(ActionForm):
    """To where each of the selected bookings moves."""

    move_to = forms.ChoiceField(
        label="Move to",
        choices=[
            ("room", "Another room at the same time"),
            ("time", "Another room, or the nearest time within 24 hours"),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="At the same center, at least as large, for the same price or less.",
    )


class ClosedBookingPages:
    """The page on an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view(self.show_bookings)
        return [path("in-closures/", view, name="reservations_in_closures")]

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
            **self.site.each_context(request),
            "title": "Bookings to resolve",
            "can_change": can_change,
            "bookings": [
                {
                    "reservation": row,
                    "place_and_time": format_place_and_time(row),
                    "customer": format_customer(row),
                    "status": render_status_badge(row, now=now),
                    "total": money.format_amount(row.total_cost),
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
        return TemplateResponse(request, "admin/reservations/closed_bookings.html", context)

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
        page = None
        if bookings:
            name = request.POST.get("do", "")
            options = OPTIONS.get(name, {})
            page = run_bulk_action(
                request,
                self.site,
                ACTIONS[name if options else "resend"],
                bookings,
                submitted=("do", name),
                back_url=request.get_full_path(),
                **options,
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


def _propose_moves(form: ActionForm, rows: Sequence[Reservation]) -> Iterator[BulkPreview]:
    move, act, taken = ACTIONS["move"], form.act, list[RoomSlot]()
    has_other_times = form.cleaned_data["move_to"] == "time"
    for row in rows:
        proposal = BulkPreview(row, ActionPreview(form, problems=[NOTHING_AVAILABLE]))
        for slot in _find_slots(row, act, has_other_times=has_other_times):
            if any(each.room == slot.room and each.span.overlaps(slot.span) for each in taken):
                continue
            fields = build_slot_fields(slot.room, slot.span, row.version)
            own_form = move.form_class(fields, reservation=row, act=act)
            preview = preview_one(move, own_form)
            total = preview.expected_amount
            if not preview.problems and total is not None and total <= row.total_cost:
                proposal = BulkPreview(row, preview, fields)
                taken.append(slot)
                break
        yield proposal


def _find_slots(reservation: Reservation, act: Act, *, has_other_times: bool) -> Iterator[RoomSlot]:
    """Find the cheapest rooms at the same time, then the nearest times."""
    room = copy(reservation.room)
    room.capacity = max(room.capacity, reservation.number_of_attendees)
    search = AlternativeSearch(room, reservation.span, (), reservation.user, act.now)
    found = alternatives.find_at_center(search, has_other_times=has_other_times)
    for each in islice(found, MAX_ATTEMPTS):
        yield RoomSlot(MeetingRoom.objects.get(pk=each.room_id), each.start, each.end)


# The buttons, and what their actions have in addition. The center cannot host.
OPTIONS: dict[str, dict[str, Any]] = {
    "cancel": {"initial": {"everything": "on"}},
    "move": {
        "form_class": RelocationForm,
        "initial": {"move_to": "room"},
        "propose": _propose_moves,
    },
}


def get_closed_bookings_url(center_id: int | None = None) -> str:
    url = reverse("admin:reservations_in_closures")
    return url if center_id is None else f"{url}?center={center_id}"
