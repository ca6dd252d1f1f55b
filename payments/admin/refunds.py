"""The list and page of refunds, with the actions on those that staff have to handle."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from accounts.admin.date_range import DateRangeFilter
from payments import refunds
from payments.admin.lists import (
    BOOKING_COLUMNS,
    CREATED_COLUMN,
    CreatedFilter,
    PaymentListMixin,
    get_booking_cells,
    get_local,
    show_local,
)
from payments.gateway_events import refund_became_due
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Refund, RefundState
from roombook.backoffice.list_export import DATETIME_NUMBER_FORMAT, ListExportMixin
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.pagination import CappedPaginator
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter, StaffTextField


class ManualRefundForm(forms.Form):
    """How staff returned the money, and what proves it."""

    method = StaffTextField(
        max_length=100,
        label="How the money was returned",
        help_text="Bank transfer, cash, ...",
    )
    reference = StaffTextField(
        max_length=100,
        label="Reference",
        help_text="What proves it: the number of the transfer or of the signed receipt.",
    )


class RefundByHandForm(forms.Form):
    """The proof that staff have returned the money."""

    reference = StaffTextField(
        max_length=200,
        label="Reference",
        help_text="The number of the receipt or of the terminal's slip.",
    )


class RefundPaginator(CappedPaginator):
    """Counts fewer rows than other lists: each row joins its payment and its reservation."""

    MAX_ROWS = 2_000


@admin.register(Refund)
class RefundAdmin(PaymentListMixin, ListExportMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    center_path = "payment__reservation__room__center"
    # Rows are read-only for everybody; the change permission allows the actions.
    action_permissions = {"resolve": roles.CHANGE_REFUND}
    list_display = (
        *("number", "payment", "reservation_link", "customer", "center", "formatted_amount"),
        *("state", "reason", "created", "done"),
    )
    fields = (
        *("payment", "reservation_link", "customer", "center", "formatted_amount", "formatted_fee"),
        *("state", "reason", "reference", "again", "key", "created_at", "done_at"),
    )
    readonly_fields = (
        "reservation_link",
        "customer",
        "center",
        "formatted_amount",
        "formatted_fee",
    )
    export_columns = (
        *(SheetColumn("Number", 10), SheetColumn("Payment", 10), *BOOKING_COLUMNS),
        *(SheetColumn("Amount", 12), SheetColumn("Fee", 10), SheetColumn("Currency", 10)),
        *(SheetColumn("State", 18), SheetColumn("Reason", 40), CREATED_COLUMN),
        SheetColumn("Done (local)", 18, DATETIME_NUMBER_FORMAT),
    )
    list_filter = (
        *(CreatedFilter, ("created_at", DateRangeFilter), ("state", ChoicesDropdownFilter)),
        ("payment__reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    paginator = RefundPaginator
    ordering = ("-created_at", "-pk")
    to_payment = "payment__"
    search_fields = ("key",)
    actions = ("retry", "mark_refunded_manually", "confirm_by_hand")
    # Offers the actions on the refund's own page.
    change_form_outer_before_template = "admin/payments/refund/to_handle.html"

    created = show_local("created_at", "created", ordering="created_at")
    done = show_local("done_at", "done")

    def get_export_row(self, row: Refund) -> tuple[CellValue, ...]:
        return (
            *(row.pk, row.payment_id, *get_booking_cells(row), row.amount, row.fee),
            *(row.payment.currency, RefundState(row.state).label, row.reason),
            *(get_local(row, at) for at in (row.created_at, row.done_at)),
        )

    def has_resolve_permission(self, request: HttpRequest, obj: Refund | None = None) -> bool:
        center = self.get_center_id(obj) if obj else None
        return roles.has_permission(request.user, self.action_permissions["resolve"], center)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        refund = context["original"]
        may_resolve = self.has_resolve_permission(request, refund)
        context |= {
            "is_unhandled": may_resolve and refunds.get_unhandled().filter(pk=refund.pk).exists(),
            "is_due_by_hand": may_resolve
            and Refund.objects.due_by_hand().filter(pk=refund.pk).exists(),
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.action(description="Retry the refund", permissions=["resolve"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Refund]) -> HttpResponse | None:
        for refund in queryset.order_by("pk"):
            try:
                retry = refunds.create_retry_refund(refund, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Retried as refund {retry.key}.")
            level, outcome = self._execute(retry)
            self.message_user(
                request, f"{retry.formatted_amount} of payment {retry.payment_id}: {outcome}", level
            )
        return _return_to_page(request, queryset)

    def _execute(self, refund: Refund) -> tuple[int, str]:
        """Execute a refund; return the level and the text of the message about it."""
        try:
            refund_became_due.send(Refund, payment=refund.payment, now=timezone.now())
        except (GatewayRefused, GatewayUnavailable) as error:
            problem = str(error)
        else:
            problem = ""
        # The error can be that of another refund, and another process can have executed this one.
        refund.refresh_from_db(fields=["state"])
        if refund.state == RefundState.REFUSED:
            return messages.ERROR, f"the gateway refused again. {problem}".strip()
        if refund.state == RefundState.STARTED:
            return (
                messages.WARNING,
                "the gateway does not respond. The refund will be retried automatically.",
            )
        return messages.SUCCESS, "refunded."

    @admin.action(description="Mark as refunded manually", permissions=["resolve"])
    def mark_refunded_manually(
        self, request: HttpRequest, queryset: QuerySet[Refund]
    ) -> HttpResponse | None:
        text = (
            "The gateway refuses to refund these amounts. Confirm that the customers have received"
            " them in another way."
        )
        form = ManualRefundForm(request.POST if "confirmed" in request.POST else None)
        return self._resolve(request, queryset, refunds.mark_refunded_manually, form, text)

    @admin.action(description="Confirm as returned manually", permissions=["resolve"])
    def confirm_by_hand(
        self, request: HttpRequest, queryset: QuerySet[Refund]
    ) -> HttpResponse | None:
        text = (
            "These payments were taken without a gateway. Confirm that the customers have received"
            " the money."
        )
        form = RefundByHandForm(request.POST if "confirmed" in request.POST else None)
        return self._resolve(request, queryset, refunds.confirm_refund_by_hand, form, text)

    def _resolve(
        self,
        request: HttpRequest,
        queryset: QuerySet[Refund],
        resolve: Callable[..., Refund],
        form: forms.Form,
        text: str,
    ) -> HttpResponse | None:
        """Ask how the money was returned, and then record that of each refund."""
        if not form.is_valid():
            action = request.POST["action"]
            chosen = self.get_actions(request)[action]
            context = {
                **self.admin_site.each_context(request),
                "title": chosen and chosen[2],
                "text": text,
                "action": action,
                "opts": self.opts,
                "rows": queryset.select_related("payment__reservation__user").order_by("pk"),
                "form": form,
                "checkbox_name": ACTION_CHECKBOX_NAME,
                "from_page": "from_page" in request.POST,
            }
            return TemplateResponse(request, "admin/payments/refund/manual_refund.html", context)
        proof = ", ".join(form.cleaned_data.values())
        for refund in queryset.order_by("pk"):
            try:
                resolve(refund, proof, now=timezone.now())
            except InvalidPaymentTransition as error:
                self.message_user(request, f"{refund}: {error}", messages.ERROR)
                continue
            self.log_change(request, refund, f"Refunded manually: {proof}")
            self.message_user(request, f"{refund}: refunded manually.", messages.SUCCESS)
        return _return_to_page(request, queryset)


def _return_to_page(request: HttpRequest, queryset: QuerySet[Refund]) -> HttpResponse | None:
    """Return to the refund's own page if the action was taken there; None: to the list."""
    refund = queryset.first() if "from_page" in request.POST else None
    return redirect("admin:payments_refund_change", refund.pk) if refund else None
