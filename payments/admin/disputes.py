"""The list of disputes: payments that customers contest at their bank."""

from django.contrib import admin
from django.db.models import F

from accounts.admin.center_scope import CenterScopedMixin
from payments.admin.lists import PaymentListMixin, format_local
from payments.models import Dispute
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.widgets import AutocompleteFilter


class DisputeWordsMixin:
    """Columns with what the gateway says of a dispute, in words."""

    @admin.display(description="reason")
    def stated_reason(self, dispute: Dispute) -> str | None:
        return dispute.reason_words or None

    @admin.display(description="status")
    def current_status(self, dispute: Dispute) -> str:
        return dispute.status_words


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
        ("closed_at", admin.EmptyFieldListFilter),
        ("payment__reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    ordering = (F("closed_at").desc(nulls_first=True), "respond_by", "pk")
    to_payment = "payment__"
    search_fields = ("reference",)

    @admin.display(description="respond by")
    def respond_until(self, dispute: Dispute) -> str | None:
        return format_local(dispute, dispute.respond_by)

    @admin.display(description="opened")
    def opened(self, dispute: Dispute) -> str | None:
        return format_local(dispute, dispute.opened_at)

    @admin.display(description="closed")
    def closed(self, dispute: Dispute) -> str | None:
        return format_local(dispute, dispute.closed_at)
