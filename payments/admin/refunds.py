"""The list and page of refunds, with the two actions on those that the gateway refused."""

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from payments import refunds
from payments.admin.search import CreatedFilter, PaymentSearchMixin
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Refund
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.pagination import CappedPaginator


class ManualRefundForm(forms.Form):
    """How staff returned the money."""

    reason = forms.CharField(
        max_length=200, label="How the money was returned", help_text="Bank transfer, cash, ..."
    )


class RefundPaginator(CappedPaginator):
    """Counts fewer rows than other lists: each row joins its payment and its reservation."""

    MAX_ROWS = 2_000


@admin.register(Refund)
class RefundAdmin(PaymentSearchMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    center_path = "payment__reservation__room__center"
    # Rows are read-only for everybody; the change permission allows the two actions.
    action_permissions = {"resolve": roles.CHANGE_REFUND}
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
    actions = ("retry", "mark_refunded_manually")

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return roles.has_permission(request.user, self.action_permissions["resolve"])

    @admin.action(description="Retry the refund", permissions=["resolve"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Refund]) -> None:
        for refund in queryset.order_by("pk"):
            try:
                retry = refunds.create_retry_refund(refund, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Retried as refund {retry.key}.")
            level, outcome = self._execute(retry)
            self.message_user(
                request, f"{retry.amount} of payment {retry.payment_id}: {outcome}", level
            )

    def _execute(self, refund: Refund) -> tuple[int, str]:
        """Execute a refund; return the level and the text of the message about it."""
        try:
            refunds.execute_refund(refund, now=timezone.now())
        except GatewayRefused as error:
            return messages.ERROR, f"the gateway refused again. {error}"
        except GatewayUnavailable:
            return (
                messages.WARNING,
                "the gateway does not respond. The refund will be retried automatically.",
            )
        return messages.SUCCESS, "refunded."

    @admin.action(description="Mark as refunded manually", permissions=["resolve"])
    def mark_refunded_manually(
        self, request: HttpRequest, queryset: QuerySet[Refund]
    ) -> HttpResponse | None:
        form = ManualRefundForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._manual_refund_page(request, queryset, form)
        reason = form.cleaned_data["reason"]
        for refund in queryset.order_by("pk"):
            try:
                refunds.mark_refunded_manually(refund, reason=reason, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Refunded manually: {reason}")
            self.message_user(request, f"{refund}: refunded manually.", messages.SUCCESS)
        return None

    def _manual_refund_page(
        self, request: HttpRequest, queryset: QuerySet[Refund], form: forms.Form
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Mark as refunded manually",
            "opts": self.opts,
            "refunds": queryset.order_by("pk"),
            "form": form,
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/payments/refund/manual_refund.html", context)
