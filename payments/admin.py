"""Money in the back office: to look at. It is moved by actions on reservations.

Only refunds that the gateway refused are seen to here.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from accounts import roles
from accounts.scope import AtCenters, InlineAtCenter, OnlyEverywhere
from payments import actions
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Dispute, IllegalMove, Payment, Refund, SavedCard
from roombook.admin import ModelAdmin, ReadOnly, TabularInline


@admin.register(SavedCard)
class SavedCardAdmin(ReadOnly, OnlyEverywhere, ModelAdmin):
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


class RefundInline(ReadOnly, InlineAtCenter, TabularInline):
    model = Refund
    fields = ("amount", "state", "reason", "created_at", "done_at")
    readonly_fields = fields
    extra = 0


class DisputeInline(ReadOnly, InlineAtCenter, TabularInline):
    model = Dispute
    fields = ("amount", "currency", "reason", "status", "opened_at", "respond_by", "closed_at")
    readonly_fields = fields
    extra = 0


@admin.register(Payment)
class PaymentAdmin(ReadOnly, AtCenters, ModelAdmin):
    center_path = "reservation__room__center"
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


class OutsideForm(forms.Form):
    """How the customer got the money."""

    reason = forms.CharField(
        max_length=200, label="How it was given back", help_text="Bank transfer, cash, ..."
    )


@admin.register(Refund)
class RefundAdmin(ReadOnly, AtCenters, ModelAdmin):
    center_path = "payment__reservation__room__center"
    # Rows are read-only for everybody; who may change refunds may see to refused ones.
    action_permissions = {"settle": "payments.change_refund"}
    list_display = ("key", "payment", "amount", "state", "reason", "created_at", "done_at")
    list_filter = ("state", "created_at")
    list_select_related = ("payment",)
    search_fields = ("key", "payment__key", "reason", "payment__reservation__user__email")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "pk")
    actions = ("try_again", "settle_outside")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return roles.may(request.user, self.action_permissions["settle"])

    @admin.action(description="Try the refund again", permissions=["settle"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[Refund]) -> None:
        for refund in queryset.order_by("pk"):
            try:
                again = actions.open_refund_again(refund, now=timezone.now())
            except IllegalMove as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Tried again as refund {again.key}.")
            level, text = self._paid_back(again)
            self.message_user(
                request, f"{again.amount} of payment {again.payment_id}: {text}", level
            )

    def _paid_back(self, refund: Refund) -> tuple[int, str]:
        try:
            actions.pay_back(refund, now=timezone.now())
        except GatewayRefused as error:
            return messages.ERROR, f"the gateway refused again. {error}"
        except GatewayUnavailable:
            return (
                messages.WARNING,
                "the gateway does not answer; it will be asked again by itself.",
            )
        return messages.SUCCESS, "paid back."

    @admin.action(description="Settled outside", permissions=["settle"])
    def settle_outside(
        self, request: HttpRequest, queryset: QuerySet[Refund]
    ) -> HttpResponse | None:
        form = OutsideForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._outside_page(request, queryset, form)
        for refund in queryset.order_by("pk"):
            why = form.cleaned_data["reason"]
            try:
                actions.settle_outside(refund, reason=why, now=timezone.now())
            except IllegalMove as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Settled outside: {why}")
            self.message_user(request, f"{refund}: settled outside.", messages.SUCCESS)
        return None

    def _outside_page(
        self, request: HttpRequest, queryset: QuerySet[Refund], form: forms.Form
    ) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": "Settled outside",
            "opts": self.opts,
            "refunds": queryset.order_by("pk"),
            "form": form,
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/payments/refund/outside.html", context)


@admin.register(Dispute)
class DisputeAdmin(ReadOnly, AtCenters, ModelAdmin):
    """Customers who asked their bank for the money back; those to be answered come first."""

    center_path = "payment__reservation__room__center"

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
