"""Reservations, allowances, promo codes and partners in the back office.

Status and money are never typed: buttons call the same functions as the API.
"""

from collections.abc import Callable
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet, Sum
from django.forms import BaseFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.outbox import OutboxMessage
from reservations import actions, approval, availability, cancellation, mail
from reservations.booking_span import span_at
from reservations.forms import DraftForm, ExtraFormSet
from reservations.models import (
    Allowance,
    AllowanceEntry,
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    Partner,
    PriceAdjustment,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.status import Status
from roombook import money
from roombook.admin import CenterClock, ReadOnly
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable


class ReadOnlyInline(ReadOnly, admin.TabularInline):
    extra = 0
    can_delete = False


class LineItemInline(ReadOnlyInline):
    model = LineItem
    fields = ("description", "rate", "amount", "total")
    ordering = ("position",)


class AttendeeInline(ReadOnlyInline):
    model = Attendee
    fields = ("name", "email_address", "company_name", "is_creator")


class ChosenServiceInline(ReadOnlyInline):
    model = ChosenService
    fields = ("service", "duration_hours", "quantity")


class AllowanceUseInline(ReadOnlyInline):
    model = AllowanceUse
    fields = ("allowance", "hours", "discount")


class PromoRedemptionInline(ReadOnlyInline):
    model = PromoRedemption
    fields = ("promo_code", "amount", "taken_at", "given_back_at")


class PriceAdjustmentInline(admin.TabularInline):
    """Only added, and only to a draft: the bill is written anew with it."""

    model = PriceAdjustment
    fields = ("amount", "reason", "by", "at")
    readonly_fields = ("by", "at")
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Reservation | None = None) -> bool:
        return obj is not None and obj.is_new and super().has_add_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Reservation)
class ReservationAdmin(CenterClock, admin.ModelAdmin):
    """Reservations, on the clock of their center."""

    list_display = (
        *("id", "status", "when", "room", "center", "user", "total", "held", "promo_code"),
    )
    list_filter = (
        *("status", "start", "room__is_live_inventory"),
        ("promo_code", admin.EmptyFieldListFilter),
        ("partner", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("room__center", "user", "promo_code")
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
        if object_id is None or not object_id.isdigit():
            return None
        row = Reservation.objects.select_related("room__center").filter(pk=object_id).first()
        return row.room.center.zone if row else None

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Cancelled, never deleted: the record stays."""
        return False

    # Columns

    @admin.display(ordering="start", description="time (center's clock)")
    def when(self, reservation: Reservation) -> str:
        zone = reservation.room.center.zone
        start, end = reservation.start.astimezone(zone), reservation.end.astimezone(zone)
        until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
        return f"{start:%Y-%m-%d %H:%M} - {until}"

    @admin.display(ordering="room__center__name")
    def center(self, reservation: Reservation) -> str:
        return str(reservation.room.center)

    @admin.display(ordering="total_cost")
    def total(self, reservation: Reservation) -> str:
        return money.display(reservation.total_cost)

    @admin.display(boolean=True, description="holds its room")
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
        form = DraftForm(posted, initial=request.GET.dict())
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
            details = [f"{each.message} {each.detail}" for each in answer.reasons]
            form.add_error(None, details or [error.message])
        except DomainError as error:
            form.add_error(None, error.message)
        return None

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm,
        formset: Any,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        """A price adjustment goes through the domain, which writes the bill anew."""
        for adjustment in formset.save(commit=False):
            actions.adjust_price(
                form.instance.pk,
                adjustment.amount,
                adjustment.reason,
                by=staff(request),
                now=timezone.now(),
            )

    # Actions

    @admin.action(description="Approve requests", permissions=["change"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        self._each(request, queryset, approval.approve, "Approved.")

    @admin.action(description="Decline requests", permissions=["change"])
    def decline(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        self._each(request, queryset, approval.decline, "Declined.")

    @admin.action(description="Mark as no-show", permissions=["change"])
    def mark_no_show(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        self._each(request, queryset, approval.mark_no_show, "No-show.")

    @admin.action(description="Cancel (shows the refund first)", permissions=["change"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> HttpResponse | None:
        if request.POST.get("confirmed"):
            self._each(request, queryset, cancellation.cancel, "Cancelled.")
            return None
        rows = queryset.select_related("room__center", "user").order_by("pk")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Cancel these reservations?",
            "previews": [(row, _preview(row)) for row in rows],
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/reservations/reservation/cancel.html", context)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Reservation],
        act: Callable[..., Any],
        done: str,
    ) -> None:
        """Act on one after the other; what cannot be done is told and stops nobody else."""
        for reservation in queryset.order_by("pk"):
            try:
                outcome = act(reservation.pk, now=timezone.now())
            except DomainError as error:
                text = f"{reservation}: {error.message}"
                self.message_user(request, text, messages.ERROR)
            else:
                self.log_change(request, reservation, done)
                text = getattr(outcome, "message", done)
                self.message_user(request, f"{reservation}: {text}", messages.SUCCESS)


def staff(request: HttpRequest) -> User:
    """Who is at work; the admin has let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


# Where the API's names and the form's differ.
FORM_FIELDS = {"start_date": "start", "end_date": "end"}


def _change_page(reservation: Reservation) -> str:
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def _preview(reservation: Reservation) -> str:
    try:
        return cancellation.preview(reservation, now=timezone.now()).message
    except DomainError as error:
        return error.message


def _mail_told(row: OutboxMessage, zone: tzinfo) -> str:
    since = (row.sent_at or row.created_at).astimezone(zone)
    return f"{row.kind}: {row.state} {since:%Y-%m-%d %H:%M}"


def _told(payment: Any) -> str:
    text = f"{money.display(payment.amount)} {payment.state}"
    if payment.card_last4:
        text += f", {payment.card_brand} ending {payment.card_last4}"
    for refund in payment.refunds.all():
        text += f", {money.display(refund.amount)} given back ({refund.state})"
    return text


class AllowanceEntryInline(ReadOnlyInline):
    model = AllowanceEntry
    fields = ("at", "period", "hours", "reason", "reservation")
    ordering = ("-at", "-pk")


@admin.register(Allowance)
class AllowanceAdmin(admin.ModelAdmin):
    """Included hours of an account, with their ledger."""

    list_display = (
        *("description", "user", "kind", "hours", "valid_from", "valid_until"),
        *("is_automatic", "is_active"),
    )
    list_filter = ("kind", "is_active", "is_automatic", "valid_until")
    list_select_related = ("user",)
    search_fields = ("description", "user__email", "user__last_name", "user__company_name")
    ordering = ("user__email", "pk")
    autocomplete_fields = ("user", "centers", "room_types")
    readonly_fields = ("balance",)
    inlines = (AllowanceEntryInline,)

    @admin.display
    def balance(self, allowance: Allowance) -> str:
        """What is left of each period that something was entered in."""
        if allowance._state.adding:
            return "-"
        rows = allowance.entries.values_list("period").annotate(Sum("hours")).order_by("-period")
        told = [
            f"{f'{period:%B %Y}' if period else 'in all'}: {allowance.hours + entered} hours left"
            for period, entered in rows[:12]
        ]
        return "; ".join(told) or f"{allowance.hours} hours, none used"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Switched off, not deleted: its ledger stays."""
        return False


@admin.register(PromoCode)
class PromoCodeAdmin(admin.ModelAdmin):
    list_display = (
        *("code", "description", "percent", "amount", "valid_until", "uses", "max_uses"),
        *("spent", "budget", "is_active"),
    )
    list_filter = ("is_active", "valid_until")
    search_fields = ("code", "description")
    ordering = ("code",)
    autocomplete_fields = ("centers", "room_types")
    readonly_fields = ("uses", "spent")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not (obj.uses or obj.redemptions.exists()))


@admin.register(Partner)
class PartnerAdmin(admin.ModelAdmin):
    list_display = ("code", "name", "bookings", "is_active")
    list_filter = ("is_active",)
    search_fields = ("code", "name")
    ordering = ("code",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Partner]:
        brought = Count("reservations", filter=~Q(reservations__status=Status.NEW))
        return super().get_queryset(request).annotate(brought=brought)

    @admin.display(ordering="brought", description="bookings brought")
    def bookings(self, partner: Any) -> int:
        return int(partner.brought)
