"""The list and page of payments, with their refunds and disputes."""

from django.contrib import admin
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts.admin.center_scope import CenterScopedInlineMixin, CenterScopedMixin
from payments.admin.search import CreatedFilter, GatewayFilter, PaymentSearchMixin
from payments.models import Dispute, Payment, Refund
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin, TabularInline


class RefundInline(ReadOnlyMixin, CenterScopedInlineMixin, TabularInline):
    model = Refund
    fields = ("amount", "state", "reason", "created_at", "done_at")
    readonly_fields = fields
    extra = 0
    show_change_link = True


class DisputeInline(ReadOnlyMixin, CenterScopedInlineMixin, TabularInline):
    model = Dispute
    fields = ("amount", "currency", "reason", "status", "opened_at", "respond_by", "closed_at")
    readonly_fields = fields
    extra = 0


@admin.register(Payment)
class PaymentAdmin(PaymentSearchMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    center_path = "reservation__room__center"
    list_display = (
        *("number", "reservation", "amount", "currency", "state", "card", "gateway"),
        *("is_live", "created_at"),
    )
    list_filter = (
        *(CreatedFilter, ("state", ChoicesDropdownFilter), GatewayFilter, "is_live"),
        ("reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("reservation",)
    ordering = ("-created_at", "-pk")
    # Only shows the search box; PaymentSearchMixin does the search.
    search_fields = ("key",)
    inlines = (RefundInline, DisputeInline)

    @admin.display(description="card")
    def card(self, payment: Payment) -> str:
        return f"{payment.card_brand} {payment.card_last4}".strip()
