"""The list of disputes: payments that customers contest at their bank."""

from django.contrib import admin
from django.db.models import F

from accounts.admin.center_scope import CenterScopedMixin
from payments.admin.search import PaymentSearchMixin
from payments.models import Dispute
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin


@admin.register(Dispute)
class DisputeAdmin(PaymentSearchMixin, ReadOnlyMixin, CenterScopedMixin, ModelAdmin):
    """Lists open disputes first, by their deadline, then closed ones, the latest first."""

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

    @admin.display
    def reservation(self, dispute: Dispute) -> str:
        return str(dispute.payment.reservation)
