"""Reservations in the back office: the list (listing.py), what is done to several of it at once
(bulk.py), the page of one with its steps (page.py), and a new draft by staff."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseFormSet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils import timezone

from accounts.scope import AtCenters
from reservations import actions, availability
from reservations.admin.bulk import ReservationActions
from reservations.admin.listing import ReservationList
from reservations.admin.page import ReservationPage, page_of, staff
from reservations.booking_span import span_at
from reservations.forms import DraftForm, ExtraFormSet
from reservations.models import Reservation
from reservations.office import urls as office
from reservations.office.steps import told
from roombook.admin import ModelAdmin
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable


@admin.register(Reservation)
class ReservationAdmin(ReservationList, ReservationActions, ReservationPage, AtCenters, ModelAdmin):
    """Reservations. Status and money are never typed: steps call the same functions as the API."""

    center_path = "room__center"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Cancelled, never deleted: the record stays."""
        return False

    def get_urls(self) -> list[URLPattern]:
        return [*office.urls(self.admin_site), *super().get_urls()]

    # A new draft, through the same function as the API

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else None
        form = DraftForm(posted, initial=DraftForm.initial_from(request.GET.dict()))
        extras = ExtraFormSet(posted, prefix="extras")
        if posted is not None and form.is_valid() and extras.is_valid():
            reservation = self._make_draft(request, form, extras)
            if reservation is not None:
                self.message_user(request, f"{reservation} is held.", messages.SUCCESS)
                return HttpResponseRedirect(page_of(reservation))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "New reservation",
            "form": form,
            "extras": extras,
            "media": self.media + form.media + extras.media,
        }
        return TemplateResponse(request, "admin/reservations/reservation/draft.html", context)

    def _make_draft(
        self, request: HttpRequest, form: DraftForm, extras: BaseFormSet
    ) -> Reservation | None:
        fields, now = form.cleaned_data, timezone.now()
        options = [
            {
                "service_id": each["service"].pk,
                **{
                    name: each[name]
                    for name in ("duration_hours", "quantity")
                    if each[name] is not None
                },
            }
            for each in extras.cleaned_data
            if each
        ]
        try:
            return actions.create_draft(
                fields["user"],
                room_id=fields["room"].pk,
                start=fields["start"],
                end=fields["end"],
                service_options=options,
                number_of_attendees=fields["number_of_attendees"],
                created_by=staff(request),
                now=now,
            )
        except InvalidRequest as error:
            for path, reason in error.fields.items():
                field = FORM_FIELDS.get(path, path)
                form.add_error(field if field in form.fields else None, reason)
        except SlotUnavailable as error:
            room = fields["room"]
            span = span_at(room.center, fields["start"], fields["end"])
            answer = availability.of(room, span, now=now, for_user=fields["user"])
            form.add_error(None, told(answer) or [error.message])
        except DomainError as error:
            form.add_error(None, error.message)
        return None


# Where the API's names and the form's differ.
FORM_FIELDS = {"start_date": "start", "end_date": "end"}
