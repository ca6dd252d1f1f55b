"""The list and page of payments, with their refunds and disputes, and what customers owe."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts import roles
from accounts.admin.center_scope import CenterScopedInlineMixin, CenterScopedMixin
from payments import manual_payments
from payments.admin.disputes import DisputeWordsMixin
from payments.admin.lists import (
    BOOKING_COLUMNS,
    CREATED_COLUMN,
    CreatedFilter,
    FeeMixin,
    GatewayFilter,
    PaymentListMixin,
    format_local,
    get_booking_cells,
    get_local,
)
from payments.models import Dispute, InvalidPaymentTransition, Payment, Refund
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
class PaymentAdmin(PaymentListMixin, ListExportMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    center_path = "reservation__room__center"
    # Rows are read-only for everybody; this permission allows the action.
    action_permissions = {"receive": roles.MARK_RECEIVED}
    actions = ("mark_received",)
    list_display = (
        *("number", "reservation_link", "customer", "center", "formatted_amount", "state", "card"),
        *("gateway", "is_live", "created"),
    )
    fields = (
        *("reservation_link", "customer", "center", "formatted_amount", "formatted_fee"),
        *("state", "card", "message", "cash_center", "gateway", "is_live", "key", "reference"),
        *("created_at", "action_until"),
        *("authorized_at", "authorized_until", "captured_at", "received_at", "settled_at"),
        "taken_by",
    )
    readonly_fields = (
        *("reservation_link", "customer", "center", "formatted_amount", "formatted_fee", "card"),
    )
    export_columns = (
        *(SheetColumn("Number", 10), *BOOKING_COLUMNS, SheetColumn("Amount", 12)),
        SheetColumn("Fee", 10),
        *(SheetColumn("Currency", 10), SheetColumn("State", 12), SheetColumn("Card", 20)),
        *(SheetColumn("Gateway", 10), SheetColumn("Live", 8), SheetColumn("Reference", 30)),
        CREATED_COLUMN,
        SheetColumn("Captured (local)", 18, DATETIME_NUMBER_FORMAT),
        SheetColumn("Received (local)", 18, DATETIME_NUMBER_FORMAT),
        SheetColumn("Closed (local)", 18, DATETIME_NUMBER_FORMAT),
    )
    list_filter = (
        *(CreatedFilter, ("state", ChoicesDropdownFilter), GatewayFilter, OwedFilter),
        "is_live",
        ("reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    ordering = ("-created_at", "-pk")
    # Only shows the search box; PaymentListMixin does the search.
    search_fields = ("key",)
    inlines = (RefundInline, DisputeInline)

    @admin.display(description="card")
    def card(self, payment: Payment) -> str:
        return f"{payment.card_brand} {payment.card_last4}".strip()

    @admin.display(description="created", ordering="created_at")
    def created(self, payment: Payment) -> str | None:
        return format_local(payment, payment.created_at)

    def get_export_row(self, row: Payment) -> tuple[CellValue, ...]:
        times = (row.created_at, row.captured_at, row.received_at, row.settled_at)
        return (
            *(row.pk, *get_booking_cells(row), row.amount, row.fee, row.currency, row.state),
            *(self.card(row), row.gateway, "yes" if row.is_live else "no", row.reference),
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
