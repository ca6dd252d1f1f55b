"""The page on which staff make a draft for a customer, and what it shows while one types."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from accounts import customer_access, roles
from accounts.models import User
from centers.models import Center, MeetingRoom
from reservations.admin.new_reservation.forms import (
    ADD,
    CenterChoiceForm,
    NewReservationForm,
    NewReservationForms,
    ServiceOptionForm,
    format_customer,
    get_bookable_centers,
)
from reservations.admin.timeline.geometry import format_clock_time
from reservations.booking import drafts, staff_drafts
from reservations.booking.staff_drafts import DraftPreview
from reservations.models import Reservation
from roombook import dates, money
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable
from roombook.ids import parse_id

MAX_CUSTOMER_SUGGESTIONS = 20


class NewReservationPages:
    """A new reservation under its addresses, on a site of the admin."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path("add/", view(self.add), name="reservations_reservation_add"),
            path("add/customers/", view(self.customers), name="reservations_draft_customers"),
            path("add/preview/", view(self.preview), name="reservations_draft_preview"),
        ]

    def add(self, request: HttpRequest) -> HttpResponse:
        """Ask for the center where it is not known, then for all the rest on one page."""
        staff = _get_staff(request)
        center = _get_center(request, staff)
        if center is None:
            return self._ask_for_center(request, staff)
        now = timezone.now()
        typed = self._typed(request, center, staff, now)
        seen = None
        if request.method == "POST" and typed.is_valid() and "check" not in request.POST:
            reservation = _create_draft(typed, staff, now)
            if reservation is not None:
                until = (reservation.hold_until or now).astimezone(center.zone)
                words = f"{dates.format_day(until)} {format_clock_time(until, center.zone)}"
                messages.success(request, f"{reservation} is held until {words}.")
                page = reverse("admin:reservations_reservation_change", args=[reservation.pk])
                return HttpResponseRedirect(page)
        if request.method == "POST":
            seen = _build_preview(typed, now)
        context = {
            **self.site.each_context(request),
            "title": f"New reservation at {center.name}",
            "content_title": f"New reservation at {center.name}",
            "center": center,
            "form": typed.form,
            "services": typed.services,
            "hold_hours": settings.HOLD_HOURS_STAFF,
            "media": typed.form.media,
            "has_errors": request.method == "POST" and "check" not in request.POST,
            **_get_preview_context(typed, seen, center),
        }
        return TemplateResponse(request, "office/draft.html", context)

    def preview(self, request: HttpRequest) -> HttpResponse:
        """A fragment: whether what is typed could be had, and what it costs."""
        staff = _get_staff(request)
        center = _get_center(request, staff)
        if request.method != "POST" or center is None:
            raise Http404
        now = timezone.now()
        typed = self._typed(request, center, staff, now)
        typed.is_valid()
        context = _get_preview_context(typed, _build_preview(typed, now), center)
        return TemplateResponse(request, "office/draft_preview.html", context)

    def customers(self, request: HttpRequest) -> HttpResponse:
        """Whom the box of customers offers for what is typed into it."""
        words = request.GET.get("term", "")
        found = (
            customer_access.find_bookable_customers(_get_staff(request), words)[
                :MAX_CUSTOMER_SUGGESTIONS
            ]
            if words.strip()
            else []
        )
        results = [{"id": each.email, "text": format_customer(each)} for each in found]
        return JsonResponse({"results": results, "pagination": {"more": False}})

    def _ask_for_center(self, request: HttpRequest, staff: User) -> HttpResponse:
        form = CenterChoiceForm(self.site, staff)
        context = {
            **self.site.each_context(request),
            "title": "New reservation",
            "content_title": "New reservation",
            "form": form,
            "media": form.media,
        }
        return TemplateResponse(request, "office/draft_center.html", context)

    def _typed(
        self, request: HttpRequest, center: Center, staff: User, now: dt.datetime
    ) -> NewReservationForms:
        posted = request.POST if request.method == "POST" else None
        local = now.astimezone(center.zone)
        initial = NewReservationForm.initial_from(request.GET.dict(), now=local)
        form = NewReservationForm(center, staff, posted, initial)
        offered = center.services.filter(is_active=True).select_related("rate")
        return NewReservationForms(
            form, [ServiceOptionForm(service, posted) for service in offered]
        )


def _get_staff(request: HttpRequest) -> User:
    if not roles.has_permission(request.user, ADD):
        raise PermissionDenied
    assert isinstance(request.user, User)
    return request.user


def _get_center(request: HttpRequest, staff: User) -> Center | None:
    """Where the draft is to be: the room's center, the one that is named, or the only one.

    None where it has yet to be chosen. What is not theirs is not found.
    """
    theirs = get_bookable_centers(staff)
    asked = request.POST if request.method == "POST" else request.GET
    named = asked.get("center") or request.GET.get("center")
    if named:
        center = theirs.filter(pk=parse_id(named) or 0).first()
        if center is None:
            raise Http404("There is no such center among yours.")
        return center
    room = parse_id(asked.get("room"))
    if room is not None:
        found = MeetingRoom.objects.select_related("center").filter(pk=room).first()
        if found is not None and theirs.filter(pk=found.center_id).exists():
            return found.center
        if found is not None:
            raise Http404("There is no such room among yours.")
    first, *others = theirs.order_by("pk")[:2] or [None]
    return None if others else first


def _build_preview(typed: NewReservationForms, now: dt.datetime) -> DraftPreview | None:
    """What the draft would be, as far as room and times are told."""
    fields = typed.form.cleaned_data
    room, start, end = (fields.get(name) for name in ("room", "start", "end"))
    if not (room and start and end):
        return None
    return staff_drafts.preview_draft(
        typed.form.customer,
        room,
        start=start,
        end=end,
        service_options=[option for _, option in typed.options],
        number_of_attendees=fields.get("number_of_attendees"),
        attendees=fields.get("attendees") or (),
        outside_hours=bool(fields.get("hours_override_reason", "").strip()),
        now=now,
    )


def _create_draft(typed: NewReservationForms, staff: User, now: dt.datetime) -> Reservation | None:
    """The draft, or nothing, and then the forms say why."""
    fields = typed.form.cleaned_data
    asked: dict[str, Any] = {
        "room_id": fields["room"].pk,
        "start": fields["start"],
        "end": fields["end"],
        "service_options": [option for _, option in typed.options],
        "number_of_attendees": fields["number_of_attendees"],
        "attendees": fields["attendees"],
        "hours_override_reason": fields.get("hours_override_reason", ""),
        "created_by": staff,
        "now": now,
    }
    try:
        if typed.form.new_customer is not None:
            return staff_drafts.create_draft_for_new_customer(typed.form.new_customer, **asked)
        assert typed.form.customer is not None
        return drafts.create_draft(typed.form.customer, **asked)
    except InvalidRequest as error:
        typed.refuse(error.fields)
    except SlotUnavailable:
        # The preview beside says why, all of it.
        typed.form.add_error(None, "The room cannot be had at that time.")
    except DomainError as error:
        typed.form.add_error(None, error.message)
    return None


def _get_preview_context(
    typed: NewReservationForms, seen: DraftPreview | None, center: Center
) -> dict[str, Any]:
    """What the preview shows, in words."""
    form = typed.form
    if seen is None:
        return {"preview": None, "center": center}
    customer = form.customer
    new = form.new_customer
    lines = [
        {"text": line.description, "rate": line.rate, "amount": line.amount}
        for line in (seen.quote.lines if seen.quote else ())
    ]
    return {
        "preview": seen,
        "center": center,
        "reasons": [reason.staff_text for reason in seen.reasons],
        "problems": list(seen.problems.values()),
        "could_be_overridden": any(each.code == "closed" for each in seen.reasons),
        "is_overridden": seen.is_outside_hours
        and bool(form.cleaned_data.get("hours_override_reason", "").strip()),
        "may_override": form.may_override_hours,
        "lines": lines,
        "total": money.format_amount(seen.quote.total) if seen.quote else "",
        "customer": customer,
        "new_customer": new,
    }
