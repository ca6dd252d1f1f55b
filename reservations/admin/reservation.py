"""Reservations in the back office: the list, a draft by staff, a page with its buttons."""

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import BaseFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts.models import User
from accounts.outbox import OutboxMessage
from reservations import actions, adjusting, approval, availability, cancellation, mail
from reservations.admin.inlines import (
    AllowanceUseInline,
    AttendeeInline,
    ChosenServiceInline,
    LineItemInline,
    PriceAdjustmentInline,
    PromoRedemptionInline,
)
from reservations.admin.when import When
from reservations.booking_span import span_at
from reservations.forms import DraftForm, ExtraFormSet
from reservations.models import Reservation
from reservations.office import urls as office
from reservations.status import Status, may_move
from roombook import money
from roombook.admin import CenterClock, ModelAdmin, number
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable

# Sent by the buttons of a reservation's own page: back to it when done.
FROM_ITS_PAGE = "from_its_page"


@admin.register(Reservation)
class ReservationAdmin(CenterClock, ModelAdmin):
    """Reservations, on the clock of their center."""

    list_display = (*("id", "status", "when", "total", "user", "place", "held"),)
    list_filter = (
        *(When, "status", "room__is_live_inventory"),
        ("promo_code", admin.EmptyFieldListFilter),
        ("partner", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("room__center", "user")
    search_fields = (
        *("=id", "user__email", "user__first_name", "user__last_name", "user__company_name"),
        *("room__name", "room__center__name", "room__center__city"),
    )
    ordering = ("-start", "-pk")
    date_hierarchy = "start"
    show_full_result_count = False
    actions = ("approve", "decline", "cancel", "mark_no_show")
    inlines = (
        *(LineItemInline, PriceAdjustmentInline, ChosenServiceInline, AttendeeInline),
        *(AllowanceUseInline, PromoRedemptionInline),
    )
    fieldsets = (
        (None, {"fields": ("status", "user", "room", "center", "start", "end", "hold_until")}),
        ("Price", {"fields": ("total", "promo_code", "allowances_by_hand", "payments")}),
        ("Told", {"fields": ("mails",)}),
        (
            "Booking",
            {
                "fields": (
                    *("number_of_attendees", "partner", "is_live", "created_at", "created_by"),
                    *("booked_at", "cancelled_at", "cancellation_notice_hours"),
                    *("cancellation_grace_minutes", "uid"),
                )
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(str(name) for _, options in self.fieldsets for name in options["fields"])

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        rows = Reservation.objects.select_related("room__center")
        row = rows.filter(pk=number(object_id) or 0).first()
        return row.room.center.zone if row else None

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Cancelled, never deleted: the record stays."""
        return False

    def get_urls(self) -> list[URLPattern]:
        return [*office.urls(self.admin_site), *super().get_urls()]

    # Columns

    @admin.display(ordering="start", description="center time")
    def when(self, reservation: Reservation) -> str:
        zone = reservation.room.center.zone
        start, end = reservation.start.astimezone(zone), reservation.end.astimezone(zone)
        until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
        return format_html("{}<br>{}", f"{start:%Y-%m-%d}", f"{start:%H:%M} - {until}")

    @admin.display(ordering="room__center__name", description="room")
    def place(self, reservation: Reservation) -> str:
        room = reservation.room
        return format_html("{}<br><small>{}</small>", room.name, room.center)

    @admin.display
    def center(self, reservation: Reservation) -> str:
        return str(reservation.room.center)

    @admin.display(ordering="total_cost")
    def total(self, reservation: Reservation) -> str:
        return money.display(reservation.total_cost)

    @admin.display(boolean=True, description="held")
    def held(self, reservation: Reservation) -> bool:
        lapsed = reservation.hold_until is not None and reservation.hold_until <= timezone.now()
        return reservation.holds_slot and not lapsed

    @admin.display
    def payments(self, reservation: Reservation) -> str:
        rows = reservation.payments.order_by("pk").prefetch_related("refunds")
        return "; ".join(_told(payment) for payment in rows) or "none"

    @admin.display(description="mails to the customer")
    def mails(self, reservation: Reservation) -> str:
        """Each mail with what became of it, on the center's clock like the rest of the page."""
        zone = timezone.get_current_timezone()
        rows = OutboxMessage.objects.about(mail.matter(reservation))
        return "; ".join(_mail_told(row, zone) for row in rows) or "none"

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
                self.log_addition(request, reservation, "Draft made.")
                self.message_user(request, f"{reservation} is held.", messages.SUCCESS)
                return HttpResponseRedirect(_change_page(reservation))
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
            # Some reasons have no more to say to staff than to customers.
            details = [" ".join({each.message: 1, each.detail: 1}) for each in answer.reasons]
            form.add_error(None, details or [error.message])
        except DomainError as error:
            form.add_error(None, error.message)
        return None

    # The page of one

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        pk = number(unquote(object_id))
        reservation = self.get_queryset(request).filter(pk=pk or 0).first()
        adjustments = PriceAdjustmentInline(Reservation, self.admin_site)
        # Nothing else is typed here.
        may_save = adjustments.has_add_permission(request, reservation)
        context = {
            "show_save": may_save,
            "show_save_and_continue": may_save,
            "show_save_and_add_another": False,
            "buttons": self._buttons(request, reservation) if reservation else [],
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "from_its_page": FROM_ITS_PAGE,
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def _buttons(self, request: HttpRequest, reservation: Reservation) -> list[tuple[str, str]]:
        """The actions that this reservation can take now, with their words."""
        allowed = self.get_actions(request)
        now = timezone.now()
        return [
            (name, label)
            for name, label, status in BUTTONS
            if name in allowed
            and may_move(reservation.status, status)
            and _is_time_for(status, reservation, now)
        ]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """What the domain refuses is told on the page; the transaction left nothing behind."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, _words(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(
        self,
        request: HttpRequest,
        obj: Reservation,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        """Nothing of the row itself is typed; to write it would undo what others do meanwhile."""

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm,
        formset: Any,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        """A price adjustment goes through the domain, which writes the bill anew."""
        for adjustment in formset.save(commit=False):
            adjusting.adjust_price(
                form.instance.pk,
                amount=adjustment.amount,
                reason=adjustment.reason,
                by=staff(request),
                now=timezone.now(),
            )

    # Actions

    @admin.action(description="Approve requests", permissions=["change"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> Any:
        return self._each(request, queryset, approval.approve, Status.CONFIRMED, "Approved.")

    @admin.action(description="Decline requests", permissions=["change"])
    def decline(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> Any:
        return self._each(request, queryset, approval.decline, Status.DECLINED, "Declined.")

    @admin.action(description="Mark as no-show", permissions=["change"])
    def mark_no_show(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> Any:
        return self._each(request, queryset, approval.mark_no_show, Status.NO_SHOW, "No-show.")

    @admin.action(description="Cancel (shows the refund first)", permissions=["change"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> Any:
        if request.POST.get("confirmed"):
            return self._each(
                request, queryset, cancellation.cancel, Status.CANCELLED, "Cancelled."
            )
        rows = list(queryset.select_related("room__center", "user").order_by("pk"))
        from_its_page = FROM_ITS_PAGE in request.POST and len(rows) == 1
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Cancel this reservation?" if len(rows) == 1 else "Cancel these reservations?",
            "previews": [(row, _preview(row)) for row in rows],
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "from_its_page": FROM_ITS_PAGE if from_its_page else None,
            "back": _change_page(rows[0]) if from_its_page else _list_page(),
        }
        return TemplateResponse(request, "admin/reservations/reservation/cancel.html", context)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Reservation],
        act: Callable[..., Any],
        into: Status,
        done: str,
    ) -> HttpResponse | None:
        """Act on one after the other; what cannot be done is told and stops nobody else."""
        reservations = list(queryset.order_by("pk"))
        for reservation in reservations:
            if reservation.status == into:
                text = f"{reservation} is {into.label.lower()} already: nothing was done."
                self.message_user(request, text, messages.INFO)
                continue
            try:
                outcome = act(reservation.pk, now=timezone.now())
            except DomainError as error:
                self.message_user(request, f"{reservation}: {_words(error)}", messages.ERROR)
            else:
                self.log_change(request, reservation, done)
                text = getattr(outcome, "message", done)
                self.message_user(request, f"{reservation}: {text}", messages.SUCCESS)
        if FROM_ITS_PAGE in request.POST and len(reservations) == 1:
            return HttpResponseRedirect(_change_page(reservations[0]))
        return None


# Action, word, and the status that says whether it is to be had. What can be declined waits for
# an answer, so that it can be approved too.
BUTTONS = (
    ("approve", "Approve", Status.DECLINED),
    ("decline", "Decline", Status.DECLINED),
    ("cancel", "Cancel…", Status.CANCELLED),
    ("mark_no_show", "No-show", Status.NO_SHOW),
)


def _is_time_for(status: Status, reservation: Reservation, now: dt.datetime) -> bool:
    """A no-show is known once the meeting has begun, and it is too late to cancel then."""
    if status == Status.NO_SHOW:
        return reservation.start <= now
    if status == Status.CANCELLED:
        return reservation.is_new or reservation.start > now
    return True


def staff(request: HttpRequest) -> User:
    """Who is at work; the admin has let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


# Where the API's names and the form's differ.
FORM_FIELDS = {"start_date": "start", "end_date": "end"}


def _list_page() -> str:
    return reverse("admin:reservations_reservation_changelist")


def _words(error: DomainError) -> str:
    """A refusal in full: which fields are wrong stands beside its message."""
    return " ".join(error.fields.values() if isinstance(error, InvalidRequest) else ()) or (
        error.message
    )


def _change_page(reservation: Reservation) -> str:
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def _preview(reservation: Reservation) -> str:
    try:
        return cancellation.preview(reservation, now=timezone.now()).message
    except DomainError as error:
        return error.message


def _mail_told(row: OutboxMessage, zone: dt.tzinfo) -> str:
    since = (row.sent_at or row.created_at).astimezone(zone)
    return f"{row.kind}: {row.state} {since:%Y-%m-%d %H:%M}"


def _told(payment: Any) -> str:
    text = f"{money.display(payment.amount)} {payment.state}"
    if payment.card_last4:
        text += f", {payment.card_brand} ending {payment.card_last4}"
    for refund in payment.refunds.all():
        text += f", {money.display(refund.amount)} given back ({refund.state})"
    return text
