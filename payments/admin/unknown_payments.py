"""The list of unknown payments: money at the gateway for no booking that we know."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import roles
from accounts.admin.center_scope import AllCentersOnlyMixin, SharedTimeZoneMixin
from payments import unknown_payments
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import UnknownPayment
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin


@admin.register(UnknownPayment)
class UnknownPaymentAdmin(ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    """Rows are read-only for everybody; the change permission allows the two actions."""

    list_display = (
        *("reference", "formatted_amount", "description", "gateway", "created_at", "found_at"),
        *("resolution", "resolved_at"),
    )
    fields = (*list_display, "key")
    readonly_fields = ("formatted_amount",)
    list_filter = (("resolved_at", admin.EmptyFieldListFilter),)
    list_filter_submit = True
    sortable_by = ()
    ordering = ("-found_at", "-pk")
    actions = ("release", "keep")

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
