"""The lists and pages of payments, disputes, saved cards and unknown payments."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts import customer_access, roles
from accounts.admin.center_scope import (
    AllCentersOnlyMixin,
    CenterScopedInlineMixin,
    CenterScopedMixin,
    SharedTimeZoneMixin,
)
from accounts.admin.date_range import DateRangeFilter
from payments import manual_payments, unknown_payments
from payments.admin.lists import (
    BOOKING_COLUMNS,
    CREATED_COLUMN,
    CreatedFilter,
    FeeMixin,
    GatewayFilter,
    PaymentListMixin,
    WayMixin,
    get_booking_cells,
    get_local,
    show_local,
)
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import (
    Dispute,
    InvalidPaymentTransition,
    Payment,
    Refund,
    SavedCard,
    UnknownPayment,
)
from roombook.backoffice.list_export import DATETIME_NUMBER_FORMAT, ListExportMixin
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin, TabularInline
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.money import format_amount


class RefundInline(FeeMixin, ReadOnlyMixin, CenterScopedInlineMixin, TabularInline):
    model = Refund
    fields = ("formatted_amount", "formatted_fee", "state", "reason", "created_at", "done_at")
    readonly_fields = fields
    extra = 0
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Refund]:
        # The amount and the name of a refund show the currency of its payment.
        rows: QuerySet[Refund] = super().get_queryset(request).select_related("payment")
        return rows


class DisputeWordsMixin:
    """Columns with what the gateway says of a dispute, in words."""

    @admin.display(description="reason")
    def stated_reason(self, dispute: Dispute) -> str | None:
        return dispute.reason_words or None

    @admin.display(description="status")
    def current_status(self, dispute: Dispute) -> str:
        return dispute.status_words


class DisputeInline(
    DisputeWordsMixin, FeeMixin, ReadOnlyMixin, CenterScopedInlineMixin, TabularInline
):
    model = Dispute
    fields = (
        *("formatted_amount", "formatted_fee", "stated_reason", "current_status"),
        *("opened_at", "respond_by", "closed_at"),
    )
    readonly_fields = fields
    extra = 0


class OwedFilter(DropdownFilter):
    """Selects the payments on account whose money has not come in (B26.4)."""

    title = "on account"
    parameter_name = "owed"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("yes", "Owed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(pk__in=Payment.objects.receivable()) if self.value() else queryset


@admin.register(Payment)
class PaymentAdmin(
    WayMixin, PaymentListMixin, ListExportMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin
):
    center_path = "reservation__room__center"
    # Rows are read-only for everybody; this permission allows the action.
    action_permissions = {"receive": roles.MARK_RECEIVED}
    actions = ("mark_received",)
    list_display = (
        *("number", "reservation_link", "customer", "center", "formatted_amount", "state", "card"),
        *("way", "is_live", "created"),
    )
    fields = (
        *("reservation_link", "customer", "center", "formatted_amount", "formatted_fee"),
        *("state", "card", "message", "cash_center", "way", "is_live", "key", "reference"),
        *("created_at", "action_until"),
        *("authorized_at", "authorized_until", "captured_at", "received_at", "closed_at"),
        "taken_by",
    )
    readonly_fields = (
        *("reservation_link", "customer", "center", "formatted_amount", "formatted_fee", "card"),
        "way",
    )
    export_columns = (
        *(SheetColumn("Number", 10), *BOOKING_COLUMNS, SheetColumn("Amount", 12)),
        SheetColumn("Fee", 10),
        *(SheetColumn("Currency", 10), SheetColumn("State", 12), SheetColumn("Card", 20)),
        *(SheetColumn("Paid by", 14), SheetColumn("Live", 8), SheetColumn("Reference", 30)),
        CREATED_COLUMN,
        SheetColumn("Captured (local)", 18, DATETIME_NUMBER_FORMAT),
        SheetColumn("Received (local)", 18, DATETIME_NUMBER_FORMAT),
        SheetColumn("Closed (local)", 18, DATETIME_NUMBER_FORMAT),
    )
    list_filter = (
        *(CreatedFilter, ("created_at", DateRangeFilter), ("state", ChoicesDropdownFilter)),
        *(GatewayFilter, OwedFilter),
        "is_live",
        ("reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    ordering = ("-created_at", "-pk")
    search_fields = ("key",)
    inlines = (RefundInline, DisputeInline)

    @admin.display(description="card")
    def card(self, payment: Payment) -> str:
        return f"{payment.card_brand} {payment.card_last4}".strip()

    created = show_local("created_at", "created", ordering="created_at")

    def get_export_row(self, row: Payment) -> tuple[CellValue, ...]:
        times = (row.created_at, row.captured_at, row.received_at, row.closed_at)
        return (
            *(row.pk, *get_booking_cells(row), row.amount, row.fee, row.currency),
            *(
                row.get_state_display(),
                self.card(row),
                self.way(row),
                "yes" if row.is_live else "no",
                row.reference,
            ),
            *(get_local(row, at) for at in times),
        )

    def has_receive_permission(self, request: HttpRequest) -> bool:
        return roles.has_permission(request.user, roles.MARK_RECEIVED)

    @admin.action(description="Mark as received", permissions=["receive"])
    def mark_received(self, request: HttpRequest, queryset: QuerySet[Payment]) -> None:
        permitted = roles.get_center_filter(request.user, roles.MARK_RECEIVED, self.center_path)
        for payment in queryset.filter(permitted).order_by("pk"):
            try:
                payment, amount = manual_payments.mark_received(payment, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, str(error), messages.ERROR)
                continue
            self.log_change(request, payment, f"Received: {format_amount(amount)}")
            text = f"{format_amount(amount)} received for reservation {payment.reservation_id}."
            self.message_user(request, text, messages.SUCCESS)


@admin.register(Dispute)
class DisputeAdmin(
    DisputeWordsMixin, PaymentListMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin
):
    """Lists open disputes first, by their deadline, then closed ones, the latest first."""

    center_path = "payment__reservation__room__center"
    list_display = (
        *("payment", "reservation_link", "customer", "center", "formatted_amount"),
        *("stated_reason", "current_status", "respond_until", "opened", "closed"),
    )
    fields = (
        *("payment", "reservation_link", "customer", "center", "reference", "formatted_amount"),
        *("formatted_fee", "stated_reason", "current_status"),
        *("opened_at", "respond_by", "closed_at"),
    )
    readonly_fields = (
        *("reservation_link", "customer", "center", "formatted_amount"),
        *("formatted_fee", "stated_reason", "current_status"),
    )
    sortable_by = ()
    list_filter = (
        ("opened_at", DateRangeFilter),
        ("closed_at", admin.EmptyFieldListFilter),
        ("payment__reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    ordering = (F("closed_at").desc(nulls_first=True), "respond_by", "pk")
    to_payment = "payment__"
    search_fields = ("reference",)

    respond_until = show_local("respond_by", "respond by")
    opened = show_local("opened_at", "opened")
    closed = show_local("closed_at", "closed")


@admin.register(SavedCard)
class SavedCardAdmin(WayMixin, ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    list_display = ("user", "brand", "last4", "expiry", "way", "created_at")
    list_filter = (("brand", ChoicesDropdownFilter), GatewayFilter)
    list_filter_submit = True
    list_select_related = ("user",)
    search_fields = ("user__email",)
    search_help_text = "E-mail or name of the account"
    ordering = ("-pk",)
    fields = (
        *("user", "brand", "last4", "expiry", "first_name", "last_name", "company_name"),
        *("has_cvv", "saved_by_setup", "way", "created_at"),
    )
    readonly_fields = ("way",)

    def search(
        self, request: HttpRequest, rows: QuerySet[SavedCard], words: str
    ) -> QuerySet[SavedCard]:
        return rows.filter(customer_access.get_search_filter(request.user, words))

    @admin.display(description="expires")
    def expiry(self, card: SavedCard) -> str:
        return f"{card.exp_month:02}/{card.exp_year}"


@admin.register(UnknownPayment)
class UnknownPaymentAdmin(
    WayMixin, ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin
):
    """Rows are read-only for everybody; the change permission allows the two actions."""

    list_display = (
        *("reference", "formatted_amount", "description", "way", "created_at", "found_at"),
        *("resolution", "resolved_at"),
    )
    fields = (*list_display, "key")
    readonly_fields = ("formatted_amount", "way")
    list_filter = (("found_at", DateRangeFilter), ("resolved_at", admin.EmptyFieldListFilter))
    list_filter_submit = True
    sortable_by = ()
    ordering = ("-found_at", "-pk")
    actions = ("release", "keep")
    # Offers the actions on the payment's own page.
    change_form_outer_before_template = "admin/payments/unknownpayment/to_resolve.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = {
            "can_resolve": self.has_resolve_permission(request),
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), **context}
        )

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return roles.has_permission_everywhere(request.user, roles.CHANGE_UNKNOWN_PAYMENT)

    @admin.action(description="Void or refund", permissions=["resolve"])
    def release(self, request: HttpRequest, queryset: QuerySet[UnknownPayment]) -> None:
        for payment in queryset.filter(resolved_at=None).order_by("pk"):
            description, level = str(payment), messages.ERROR
            try:
                outcome = unknown_payments.refresh_unknown_payment(
                    payment, release=True, now=timezone.now()
                )
            except GatewayRefused as error:
                outcome = f"the gateway refused. {error}"
            except GatewayUnavailable:
                outcome = "the gateway does not answer. Please try again."
            else:
                level = messages.SUCCESS
                # A row without money is deleted.
                if payment.pk:
                    self.log_change(request, payment, f"Released: {outcome}")
            self.message_user(request, f"{description}: {outcome}", level)

    @admin.action(description="Keep (for a booking entered again)", permissions=["resolve"])
    def keep(self, request: HttpRequest, queryset: QuerySet[UnknownPayment]) -> None:
        for payment in queryset.filter(resolved_at=None).order_by("pk"):
            unknown_payments.keep(payment, now=timezone.now())
            self.log_change(request, payment, "Kept")
            self.message_user(request, f"{payment}: kept.", messages.SUCCESS)
