"""Money in the back office: to look at. It is moved by actions on reservations."""

from django.contrib import admin
from django.db.models import F

from payments.models import Dispute, Payment, Refund, SavedCard
from roombook.admin import ReadOnly


@admin.register(SavedCard)
class SavedCardAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("user", "brand", "last4", "expiry", "gateway", "created_at")
    list_filter = ("brand", "gateway")
    list_select_related = ("user",)
    search_fields = ("user__email", "last4", "first_name", "last_name")
    ordering = ("-created_at", "pk")
    fields = (
        "user",
        "brand",
        "last4",
        "expiry",
        "first_name",
        "last_name",
        "company_name",
        "has_cvv",
        "gateway",
        "created_at",
    )

    @admin.display(description="expires")
    def expiry(self, card: SavedCard) -> str:
        return f"{card.exp_month:02}/{card.exp_year}"


class RefundInline(ReadOnly, admin.TabularInline):
    model = Refund
    fields = ("amount", "state", "reason", "created_at", "done_at")
    readonly_fields = fields
    extra = 0


class DisputeInline(ReadOnly, admin.TabularInline):
    model = Dispute
    fields = ("amount", "currency", "reason", "status", "opened_at", "respond_by", "closed_at")
    readonly_fields = fields
    extra = 0


@admin.register(Payment)
class PaymentAdmin(ReadOnly, admin.ModelAdmin):
    list_display = (
        "key",
        "reservation",
        "amount",
        "currency",
        "state",
        "card",
        "gateway",
        "is_live",
        "created_at",
    )
    list_filter = ("state", "gateway", "is_live", "created_at")
    list_select_related = ("reservation",)
    search_fields = ("key", "reference", "card_last4", "reservation__user__email")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "pk")
    inlines = (RefundInline, DisputeInline)

    @admin.display(description="card")
    def card(self, payment: Payment) -> str:
        return f"{payment.card_brand} {payment.card_last4}".strip()


@admin.register(Refund)
class RefundAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("key", "payment", "amount", "state", "reason", "created_at", "done_at")
    list_filter = ("state", "created_at")
    list_select_related = ("payment",)
    search_fields = ("key", "payment__key", "reason", "payment__reservation__user__email")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "pk")


@admin.register(Dispute)
class DisputeAdmin(ReadOnly, admin.ModelAdmin):
    """Customers who asked their bank for the money back; those to be answered come first."""

    list_display = (
        *("payment", "reservation", "amount", "currency", "reason", "status"),
        *("respond_by", "opened_at", "closed_at"),
    )
    list_filter = (("closed_at", admin.EmptyFieldListFilter), "status", "opened_at")
    list_select_related = ("payment__reservation",)
    search_fields = ("reference", "payment__key", "payment__reservation__user__email")
    date_hierarchy = "opened_at"
    ordering = (F("closed_at").asc(nulls_first=True), "respond_by", "pk")

    @admin.display
    def reservation(self, dispute: Dispute) -> str:
        return str(dispute.payment.reservation)
