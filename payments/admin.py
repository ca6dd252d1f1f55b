"""Money in the back office: to look at. It is moved by actions on reservations.

Only refunds that the gateway refused are seen to here.
"""

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts import roles, user_search
from accounts.admin.center_scope import (
    AllCentersOnlyMixin,
    CenterScopedInlineMixin,
    CenterScopedMixin,
)
from payments import gateways, processing
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import Dispute, InvalidPaymentTransition, Payment, Refund, SavedCard
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.model_admin import (
    CappedPaginator,
    ModelAdmin,
    ReadOnlyMixin,
    TabularInline,
)
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id


class PaymentSearchMixin(ModelAdminBase):
    """A list of money that is found by what staff hold in their hands, each through an index.

    `to_payment` leads from a row to its payment. Stands before ModelAdmin among the bases.
    """

    to_payment = ""
    # To sort a million rows by what has no index takes seconds.
    sortable_by: ClassVar[tuple[str, ...]] = ("created_at",)

    @admin.display(description="no.")
    def number(self, row: Any) -> int:
        return int(row.pk)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        words = search_term.strip()
        if not words:
            return queryset, False
        if (pk := parse_id(words.removeprefix("#"))) is not None:
            return queryset.filter(**{f"{self.to_payment}reservation": pk}), False
        if (key := _parse_uuid(words)) is not None:
            by_key = Q(**{f"{self.to_payment}key": key})
            if self.to_payment and hasattr(queryset.model, "key"):
                by_key |= Q(key=key)
            return queryset.filter(by_key), False
        if references := list(
            Payment.objects.filter(reference=words).values_list("pk", flat=True)[
                :MAX_PAYMENTS_PER_REFERENCE
            ]
        ):
            return queryset.filter(**{f"{self.to_payment}pk__in": references}), False
        if queryset.model is Dispute and queryset.filter(reference=words).exists():
            return queryset.filter(reference=words), False
        by_address = roles.has_permission(request.user, "accounts.view_user")
        customers = user_search.matching_prefix(words, by_address=by_address)
        return queryset.filter(**{f"{self.to_payment}reservation__user__in": customers}), False


# Of one reference there is one payment a gateway.
MAX_PAYMENTS_PER_REFERENCE = 10


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


class CreatedFilter(DropdownFilter):
    """By the day on which a row was made, in UTC as everything about money."""

    title = "made (days in UTC)"
    parameter_name = "made"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("today", "Today"),
            ("week", "Last 7 days"),
            ("month", "This month"),
            ("last-month", "Last month"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
        first = today.replace(day=1)
        spans = {
            "today": (today, None),
            "week": (today - timedelta(days=6), None),
            "month": (first, None),
            "last-month": ((first - timedelta(days=1)).replace(day=1), first),
        }
        since, until = spans.get(self.value() or "", (None, None))
        if since is not None:
            queryset = queryset.filter(created_at__gte=since)
        return queryset.filter(created_at__lt=until) if until is not None else queryset


class GatewayFilter(DropdownFilter):
    """By gateway; those that there can be, not read from a million rows."""

    title = "gateway"
    parameter_name = "gateway"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.capitalize()) for name in gateways.GATEWAY_CLASSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        known = self.value() in gateways.GATEWAY_CLASSES
        return queryset.filter(gateway=self.value()) if known else queryset


@admin.register(SavedCard)
class SavedCardAdmin(ReadOnlyMixin, AllCentersOnlyMixin, ModelAdmin):
    list_display = ("user", "brand", "last4", "expiry", "gateway", "created_at")
    list_filter = (("brand", ChoicesDropdownFilter), GatewayFilter)
    list_filter_submit = True
    list_select_related = ("user",)
    search_fields = ("user__email",)
    search_help_text = "E-mail or name of the account"
    ordering = ("-pk",)
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

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SavedCard], search_term: str
    ) -> tuple[QuerySet[SavedCard], bool]:
        if not search_term.strip():
            return queryset, False
        return queryset.filter(user__in=user_search.matching_prefix(search_term)), False

    @admin.display(description="expires")
    def expiry(self, card: SavedCard) -> str:
        return f"{card.exp_month:02}/{card.exp_year}"


class RefundInline(ReadOnlyMixin, CenterScopedInlineMixin, TabularInline):
    model = Refund
    fields = ("amount", "state", "reason", "created_at", "done_at")
    readonly_fields = fields
    extra = 0


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
    # For the box alone: what is searched is said in FoundByMoney.
    search_fields = ("key",)
    search_help_text = "Reservation, key, gateway's reference, e-mail or name"
    inlines = (RefundInline, DisputeInline)

    @admin.display(description="card")
    def card(self, payment: Payment) -> str:
        return f"{payment.card_brand} {payment.card_last4}".strip()


class ManualRefundForm(forms.Form):
    """How the customer got the money."""

    reason = forms.CharField(
        max_length=200, label="How it was given back", help_text="Bank transfer, cash, ..."
    )


class RefundPaginator(CappedPaginator):
    """They end sooner: whose a refund is takes its payment and its reservation to tell."""

    MOST = 2_000


@admin.register(Refund)
class RefundAdmin(PaymentSearchMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    center_path = "payment__reservation__room__center"
    # Rows are read-only for everybody; who may change refunds may see to refused ones.
    action_permissions = {"settle": "payments.change_refund"}
    list_display = ("number", "payment", "amount", "state", "reason", "created_at", "done_at")
    list_filter = (
        *(CreatedFilter, ("state", ChoicesDropdownFilter)),
        ("payment__reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("payment",)
    paginator = RefundPaginator
    ordering = ("-created_at", "-pk")
    to_payment = "payment__"
    search_fields = ("key",)
    search_help_text = "Reservation, key, gateway's reference, e-mail or name"
    actions = ("try_again", "settle_outside")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return roles.has_permission(request.user, self.action_permissions["settle"])

    @admin.action(description="Try the refund again", permissions=["settle"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[Refund]) -> None:
        for refund in queryset.order_by("pk"):
            try:
                again = processing.create_retry_refund(refund, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Tried again as refund {again.key}.")
            level, text = self._paid_back(again)
            self.message_user(
                request, f"{again.amount} of payment {again.payment_id}: {text}", level
            )

    def _paid_back(self, refund: Refund) -> tuple[int, str]:
        try:
            processing.execute_refund(refund, now=timezone.now())
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
        form = ManualRefundForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._outside_page(request, queryset, form)
        for refund in queryset.order_by("pk"):
            why = form.cleaned_data["reason"]
            try:
                processing.mark_refunded_manually(refund, reason=why, now=timezone.now())
            except InvalidPaymentTransition as error:
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
class DisputeAdmin(PaymentSearchMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    """Customers who asked their bank for the money back; those to be answered come first, then the
    latest that ended."""

    center_path = "payment__reservation__room__center"

    list_display = (
        *("payment", "reservation", "amount", "currency", "reason", "status"),
        *("respond_by", "opened_at", "closed_at"),
    )
    sortable_by = ()
    list_filter = (
        ("closed_at", admin.EmptyFieldListFilter),
        ("payment__reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("payment__reservation",)
    ordering = (F("closed_at").desc(nulls_first=True), "respond_by", "pk")
    to_payment = "payment__"
    search_fields = ("reference",)
    search_help_text = "Reservation, key, gateway's reference, e-mail or name"

    @admin.display
    def reservation(self, dispute: Dispute) -> str:
        return str(dispute.payment.reservation)
