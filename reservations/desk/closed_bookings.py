"""The page of bookings to resolve, where staff cancel or move several at once, or write to them.

They lie in closures, or another setting has made them impossible or wrong. Each booking is changed
in a transaction of its own. What fails is listed with its reason, and stays on the page and in
"Needs attention" until the booking is resolved.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Any

from django import forms
from django.contrib import messages
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
from reservations.desk.bulk_actions import BulkPreview, preview_one, run_bulk_action
from reservations.desk.previews import ActionPreview
from reservations.display import format_customer, format_place_and_time, render_status_badge
from reservations.models import Reservation
from roombook import dates, money
from roombook.ids import parse_id

# A page of bookings, and what one action can change.
MAX_BOOKINGS = 20
# Alternatives are sorted by price, so the next ones rarely help.
MAX_ATTEMPTS = 3
NOTHING_AVAILABLE = "No room that is as large is available for the same price or less."


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


def _propose_moves(
    form: ActionForm, rows: Sequence[Reservation], act: Act
) -> Iterator[BulkPreview]:
    move, taken = ACTIONS["move"], list[RoomSlot]()
    has_other_times = form.cleaned_data["move_to"] == "time"
    for row in rows:
        proposal = BulkPreview(row, ActionPreview(problems=[NOTHING_AVAILABLE]))
        for slot in _find_slots(row, act, has_other_times=has_other_times):
            if any(each.room == slot.room and each.span.overlaps(slot.span) for each in taken):
                continue
            fields = build_slot_fields(slot.room, slot.span, row.version)
            own_form = move.form_class(fields, reservation=row, act=act)
            preview = preview_one(move, row, own_form, act)
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
