"""Money in the back office: to look at. It is moved by actions on reservations."""

from django.contrib import admin

from payments.models import Payment, Refund, SavedCard
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
    inlines = (RefundInline,)

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
