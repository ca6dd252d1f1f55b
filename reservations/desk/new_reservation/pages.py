"""The page on which staff create a draft for a customer, with a live preview."""

import datetime as dt
import hashlib
import json
from urllib.parse import urlencode
from uuid import uuid4

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts import roles
from accounts.act import Act
from accounts.customer_access import find_bookable_customers
from accounts.models import User
from centers.models import Center, MeetingRoom
from centers.requested_span import resolve_span
from reservations.alternatives import AlternativeSearch
from reservations.booking import drafts
from reservations.booking.drafts import DraftPreview
from reservations.desk.find_room import FindRoomForm, FoundRooms, find_rooms, read_choice
from reservations.desk.forms import CenterForm
from reservations.desk.new_reservation.forms import (
    NewReservationForm,
    format_customer,
    get_bookable_centers,
)
from reservations.display import format_datetime, format_time_zone, get_reservation_url
from reservations.models import Reservation
from roombook import money
from roombook.backoffice.pages import BackofficePages
from roombook.db.transactions import in_transaction
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable
from roombook.ids import parse_id
from roombook.models import SavedResponse

MAX_CUSTOMER_SUGGESTIONS = 20
PEOPLE = "number_of_attendees"


class NewReservationPages(BackofficePages):
    """The pages of a new reservation."""

    pages = (
        ("add/", "add", "reservations_reservation_add"),
        ("add/customers/", "suggest_customers", "reservations_draft_customers"),
        ("add/preview/", "preview", "reservations_draft_preview"),
        ("add/find-room/", "find_room", "reservations_find_room"),
    )

    def add(self, request: HttpRequest) -> HttpResponse:
        """Ask for the center if it is not known, then for everything else on one page."""
        staff = roles.require_permission(request, roles.ADD_RESERVATION)
        center = _get_center(request, staff)
        if center is None:
            choice = CenterForm(centers=get_bookable_centers(staff))
            context = {"title": "New reservation", "form": choice, "media": choice.media}
            return self._render(request, "new_reservation_center.html", context)
        now = timezone.now()
        form = _build_form(request, center, staff, now)
        is_submitted = request.method == "POST" and not {"check", "choose"} & {*request.POST}
        if is_submitted:
            reservation = _create_once(request, form, staff, now)
            if reservation is not None:
                until = format_datetime(reservation, reservation.hold_until or now)
                messages.success(request, f"{reservation} is held until {until}.")
                return HttpResponseRedirect(get_reservation_url(reservation.pk))
        form.is_valid()
        preview = _build_preview(form, now) if request.method == "POST" else None
        context = {
            "title": f"New reservation at {center.name}",
            "zone_name": format_time_zone(center, now),
            "next_times": json.dumps(form.next_times),
            "hold_hours": settings.HOLD_HOURS_STAFF,
            "media": form.media,
            "has_errors": is_submitted,
            "submission": uuid4(),
            **_get_preview_context(form, preview, center, now),
        }
        return self._render(request, "new_reservation.html", context)

    def preview(self, request: HttpRequest) -> HttpResponse:
        """A fragment with the availability and the price of the submitted draft."""
        staff = roles.require_permission(request, roles.ADD_RESERVATION)
        center = _get_center(request, staff)
        if request.method != "POST" or center is None:
            raise Http404
        now = timezone.now()
        form = _build_form(request, center, staff, now)
        form.is_valid()
        context = _get_preview_context(form, _build_preview(form, now), center, now)
        template = "admin/reservations/new_reservation_preview.html"
        return TemplateResponse(request, template, context)

    def find_room(self, request: HttpRequest) -> HttpResponse:
        """The free rooms for some people and a time, each of which leads to a new reservation."""
        staff = roles.require_permission(request, roles.ADD_RESERVATION)
        center, now = _get_center(request, staff), timezone.now()
        form = FindRoomForm(request.GET, get_bookable_centers(staff), center, now)
        context = {
            "title": f"Find a room at {center.name}" if center else "Find a room",
            "form": form,
            "media": form.media,
            "zone_name": format_time_zone(center, now) if center else "",
            "found": form.find(staff, now=now) if center else None,
            "new_url": (
                f"{reverse('admin:reservations_reservation_add')}?"
                f"{urlencode({PEOPLE: form.data['people']})}"
            ),
        }
        return self._render(request, "find_room.html", context)

    def suggest_customers(self, request: HttpRequest) -> HttpResponse:
        """The suggestions of the customer field."""
        staff = roles.require_permission(request, roles.ADD_RESERVATION)
        term = request.GET.get("term", "")
        customers = find_bookable_customers(staff, term)[:MAX_CUSTOMER_SUGGESTIONS]
        results = [
            {"id": customer.email, "text": format_customer(customer)}
            for customer in (customers if term.strip() else ())
        ]
        return JsonResponse({"results": results, "pagination": {"more": False}})

    def _render(
        self, request: HttpRequest, template: str, context: dict[str, object]
    ) -> HttpResponse:
        context = {"content_title": context["title"], **context}
        return self.render(request, f"admin/reservations/{template}", context)


def _get_center(request: HttpRequest, staff: User) -> Center | None:
    """The center of the query, the room's center, or the only one; None if unknown.

    Raises:
        Http404: the user may not book at that center.
    """
    centers = get_bookable_centers(staff)
    query = read_choice(request.POST) if request.method == "POST" else request.GET
    if center_id := query.get("center") or request.GET.get("center"):
        center = centers.filter(pk=parse_id(center_id) or 0).first()
        if center is None:
            raise Http404("Not found.")
        return center
    room_id = parse_id(query.get("room"))
    if room_id is not None:
        room = MeetingRoom.objects.select_related("center").filter(pk=room_id).first()
        if room is not None:
            if not centers.filter(pk=room.center_id).exists():
                raise Http404("Not found.")
            return room.center
    first, *others = centers.order_by("pk")[:2] or [None]
    return None if others else first


def _build_form(
    request: HttpRequest, center: Center, staff: User, now: dt.datetime
) -> NewReservationForm:
    data = read_choice(request.POST) if request.method == "POST" else None
    return NewReservationForm(center, staff, data, request.GET.dict(), now=now)


def _build_preview(form: NewReservationForm, now: dt.datetime) -> DraftPreview | None:
    """The preview of the draft, or None without a room and times."""
    room, draft = form.cleaned_data.get("room"), form.draft
    if not (room and draft["start"] and draft["end"]):
        return None
    return drafts.preview_draft(form.customer, room, now=now, **draft)


@in_transaction
def _create_once(
    request: HttpRequest, form: NewReservationForm, staff: User, now: dt.datetime
) -> Reservation | None:
    """Create the draft, or return that of the first click of a double click.

    Each page has a `submission` of its own. A page to which staff go back after the draft has
    ended creates another one. Returns None if the form has errors.
    """
    digest = hashlib.sha256(request.POST.urlencode().encode()).hexdigest()
    key = {"user": staff, "operation": "new reservation", "key_digest": digest}
    # The second request waits here until the first one has ended.
    row = SavedResponse(**key, created_at=now)
    SavedResponse.objects.bulk_create([row], ignore_conflicts=True)
    saved = SavedResponse.objects.filter(**key)
    drafts_held = Reservation.objects.active_holds(now)
    if draft := drafts_held.filter(pk=saved.get().content or 0).first():
        return draft
    act = Act(staff, now, is_staff=True)
    reservation = _create_draft(form, act) if form.is_valid() else None
    if reservation is None or not request.POST.get("submission"):
        saved.delete()
    else:
        saved.update(content=str(reservation.pk))
    return reservation


def _create_draft(form: NewReservationForm, act: Act) -> Reservation | None:
    """Create the draft, or add the errors to the form and return None."""
    room_id = form.cleaned_data["room"].pk
    try:
        if form.new_customer is not None:
            return drafts.create_draft_for_new_customer(
                act, form.new_customer, room_id=room_id, **form.draft
            )
        assert form.customer is not None
        return drafts.create_draft(act, form.customer, room_id=room_id, **form.draft)
    except InvalidRequest as error:
        form.add_errors(error.fields)
    except SlotUnavailable:
        # The preview next to the form lists all reasons.
        form.add_error(None, "The room is not available at that time.")
    except DomainError as error:
        form.add_error(None, error.message)
    return None


def _find_others(
    form: NewReservationForm, preview: DraftPreview | None, center: Center, now: dt.datetime
) -> FoundRooms | None:
    """What is free, unless the chosen room can have so many people at that time."""
    data = form.cleaned_data
    room, start, end = (data.get(name) for name in ("room", "start", "end"))
    fits = preview and preview.is_available and PEOPLE not in preview.problems
    if fits or not (start and end):
        return None
    try:
        span = resolve_span(center, start, end)
    except InvalidRequest:
        return None
    search = AlternativeSearch(
        room=room or MeetingRoom(center=center, capacity=1),
        span=span,
        services=(),
        user=form.customer,
        now=now,
        people=data.get(PEOPLE),
        by_staff=True,
    )
    return find_rooms(search, form.staff, roles.ADD_RESERVATION)


def _get_preview_context(
    form: NewReservationForm, preview: DraftPreview | None, center: Center, now: dt.datetime
) -> dict[str, object]:
    context: dict[str, object] = {"form": form, "preview": preview, "center": center}
    context["found"] = _find_others(form, preview, center, now) if form.is_bound else None
    if preview is None:
        return context
    form.add_errors(preview.problems)
    return {
        **context,
        "problems": [*(reason.staff_text for reason in preview.reasons), *form.problems],
        "is_possible": preview.span is not None and not form.problems,
        "is_closed": any(reason.code == "closed" for reason in preview.reasons),
        "is_overridden": preview.is_outside_hours and form.override_reason,
        "total": money.format_amount(preview.quote.total) if preview.quote else "",
    }
