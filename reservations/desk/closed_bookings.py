"""The page of bookings to resolve, where staff cancel or move several at once, or write to them.

They lie in closures, or another setting has made them impossible or wrong. Each booking is changed
in a transaction of its own. What fails is listed with its reason, and stays on the page and in
"Needs attention" until the booking is resolved.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

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
from centers.span import Span
from reservations import alternatives, availability
from reservations.alternatives import AlternativeSearch
from reservations.desk.actions import ACTIONS
from reservations.desk.actions.base import Action, ActionPreview, ActionRequest
from reservations.desk.bulk_actions import (
    BulkCancellationForm,
    BulkPreview,
    build_bulk_context,
    execute_one,
    preview_one,
)
from reservations.display import (
    format_customer,
    format_place_and_time,
    get_reservation_url,
    render_status_badge,
)
from reservations.models import Reservation
from roombook import dates, money
from roombook.ids import parse_id

# A page of bookings, and what one action can change.
MAX_BOOKINGS = 20
TITLES = {
    "move": "Move each booking?",
    "cancel": "Cancel each booking?",
    "resend": "E-mail each customer?",
}
# Alternatives are sorted by price, so the next ones rarely help.
MAX_ATTEMPTS = 3
NOTHING_AVAILABLE = "No room that is as large is available for the same price or less."


@dataclass(frozen=True, slots=True)
class RelocationTarget:
    """A room and a time, and the version of the reservation that moves there.

    Its text is what the preview's form sends back.
    """

    room: MeetingRoom
    span: Span
    version: int

    def __str__(self) -> str:
        start, end = self.span.start.isoformat(), self.span.end.isoformat()
        return f"{self.room.pk} {start} {end} {self.version}"

    @classmethod
    def parse(cls, text: str, reservation: Reservation) -> Self | None:
        """Read what the preview's form sent; None unless it is a room of the same center."""
        try:
            room_id, start, end, version = text.split(" ", 3)
            span = Span(dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end))
            expected = int(version)
        except ValueError:
            return None
        rooms = MeetingRoom.objects.filter(center=reservation.room.center_id)
        room = rooms.filter(pk=parse_id(room_id) or 0).first()
        return cls(room, span, expected) if room is not None else None

    @property
    def data(self) -> Mapping[str, object]:
        """The data that the action "Reschedule" takes."""
        return {
            "room": self.room,
            "start": self.span.start,
            "end": self.span.end,
            "expected_version": self.version,
        }


class ClosedBookingsForm(BulkCancellationForm):
    """What becomes of the selected bookings."""

    move_to = forms.ChoiceField(
        label="Move to",
        choices=[
            ("room", "Another room at the same time"),
            ("time", "Another room, or the nearest time within 24 hours"),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="At the same center, at least as large, for the same price or less.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The center cannot host.
        super().__init__(*args, initial={"refund": "full"}, **kwargs)

    def needs_reason(self) -> bool:
        # Moving refunds only a difference.
        return self.data.get("do") == "cancel"


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
        now, form = timezone.now(), None
        if roles.has_permission(staff, roles.CHANGE_RESERVATION):
            data = request.POST if request.method == "POST" else None
            form = ClosedBookingsForm(data, user=staff)
            if form.is_bound and form.is_valid():
                return self._act(request, form, staff, now)
        # What was not selected stays so if the form has errors.
        selected = _get_selected_ids(request) if form and form.is_bound else None
        rows = _find_bookings(request, staff, roles.VIEW_RESERVATION, now)
        found = list(rows.order_by("start", "pk")[: MAX_BOOKINGS + 1])
        bookings = found[:MAX_BOOKINGS]
        problems = _describe_problems(bookings)
        context = {
            "form": form,
            "bookings": [
                {
                    "reservation": row,
                    "url": get_reservation_url(row.pk),
                    "place_and_time": format_place_and_time(row),
                    "customer": format_customer(row),
                    "status": render_status_badge(row, now=now),
                    "total": money.format_amount(row.total_cost),
                    "problems": problems[row.pk],
                    "is_selected": selected is None or row.pk in selected,
                    "can_change": roles.has_permission(
                        staff, roles.CHANGE_RESERVATION, row.room.center_id
                    ),
                }
                for row in bookings
            ],
            "has_more": len(found) > MAX_BOOKINGS,
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return self._render(request, "closed_bookings.html", "Bookings to resolve", context)

    def _render(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        page = {**self.site.each_context(request), "title": title, **context}
        return TemplateResponse(request, f"admin/reservations/{template}", page)

    def _act(
        self, request: HttpRequest, form: ClosedBookingsForm, staff: User, now: dt.datetime
    ) -> HttpResponse:
        """Preview the action for the selected bookings or, once confirmed, execute it for each."""
        ids = _get_selected_ids(request)
        rows = _find_bookings(request, staff, roles.CHANGE_RESERVATION, now)
        bookings = list(rows.filter(pk__in=ids).order_by("start", "pk")[:MAX_BOOKINGS])
        if gone := len(ids) - len(bookings):
            text = "1 selected booking is" if gone == 1 else f"{gone} selected bookings are"
            messages.warning(request, f"{text} resolved already: nothing was changed.")
        if not bookings:
            if not ids:
                messages.error(request, "Select at least one booking.")
            return redirect(request.get_full_path())
        name = request.POST.get("do", "")
        is_move, action = name == "move", ACTIONS[name if name in TITLES else "cancel"]
        if request.POST.get("confirmed"):
            for booking in bookings:
                _execute(request, action, booking, form, staff)
            return redirect(request.get_full_path())
        if is_move:
            previews = _preview_moves(bookings, form, staff, now)
        else:
            previews = [
                BulkPreview(row, preview_one(action, row, staff, form.action_data))
                for row in bookings
            ]
        title = TITLES[action.name]
        submitted = [(name, request.POST.get(name, "")) for name in ("do", *form.fields)]
        context = build_bulk_context(
            action, previews, submitted=submitted, back_url=request.get_full_path()
        )
        return self._render(request, "bulk_action.html", title, context)


def _get_selected_ids(request: HttpRequest) -> set[int]:
    return {parse_id(each) or 0 for each in request.POST.getlist(ACTION_CHECKBOX_NAME)}


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


# --- The actions ---------------------------------------------------------------------------------


def _preview_moves(
    bookings: Sequence[Reservation], form: ClosedBookingsForm, staff: User, now: dt.datetime
) -> list[BulkPreview]:
    has_other_times = form.cleaned_data["move_to"] == "time"
    act = Act(staff, now, is_staff=True)
    previews, taken = [], list[RelocationTarget]()
    for booking in bookings:
        target, preview = _propose(booking, has_other_times=has_other_times, taken=taken, act=act)
        if target is not None:
            taken.append(target)
        previews.append(BulkPreview(booking, preview, target))
    return previews


def _propose(
    reservation: Reservation,
    *,
    has_other_times: bool,
    taken: list[RelocationTarget],
    act: Act,
) -> tuple[RelocationTarget | None, ActionPreview]:
    """Find the cheapest room at the same time, else the nearest time, and preview the move.

    `taken` are the targets of other proposals, which are not executed yet.
    """
    room = copy(reservation.room)
    room.capacity = max(room.capacity, reservation.number_of_attendees)
    search = AlternativeSearch(room, reservation.span, (), reservation.user, act.now)
    found = alternatives.find_at_center(search, has_other_times=has_other_times)
    for alternative in islice(found, MAX_ATTEMPTS):
        span = Span(alternative.start, alternative.end)
        if any(each.room.pk == alternative.room_id and each.span.overlaps(span) for each in taken):
            continue
        room = MeetingRoom.objects.get(pk=alternative.room_id)
        target = RelocationTarget(room, span, reservation.version)
        request = ActionRequest(reservation, act, target.data)
        preview = ACTIONS["move"].preview(request)
        total = preview.expected_amount
        if not preview.problems and total is not None and total <= reservation.total_cost:
            return target, preview
    return None, ActionPreview(problems=[NOTHING_AVAILABLE])


def _execute(
    request: HttpRequest,
    action: Action,
    booking: Reservation,
    form: ClosedBookingsForm,
    staff: User,
) -> None:
    """Take the action, or show why not; the other bookings are not affected."""
    data = form.action_data
    if action.name == "move":
        target = RelocationTarget.parse(request.POST.get(f"target_{booking.pk}", ""), booking)
        if target is None:
            messages.error(request, f"{booking}: There is nowhere to move it to.")
            return
        data = dict(target.data)
    execute_one(request, action, booking, staff, data)


def get_closed_bookings_url(center_id: int | None = None) -> str:
    url = reverse("admin:reservations_in_closures")
    return url if center_id is None else f"{url}?center={center_id}"
