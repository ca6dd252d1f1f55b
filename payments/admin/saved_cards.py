"""The list and page of saved cards."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import customer_access
from accounts.admin.center_scope import AllCentersOnlyMixin, SharedTimeZoneMixin
from payments.admin.lists import GatewayFilter
from payments.models import SavedCard
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin


@admin.register(SavedCard)
class SavedCardAdmin(ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    list_display = ("user", "brand", "last4", "expiry", "gateway", "created_at")
    list_filter = (("brand", ChoicesDropdownFilter), GatewayFilter)
    list_filter_submit = True
    list_select_related = ("user",)
    search_fields = ("user__email",)
    search_help_text = "E-mail or name of the account"
    ordering = ("-pk",)
    fields = (
        *("user", "brand", "last4", "expiry", "first_name", "last_name", "company_name"),
        *("has_cvv", "saved_by_setup", "gateway", "created_at"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SavedCard], search_term: str
    ) -> tuple[QuerySet[SavedCard], bool]:
        if not search_term.strip():
            return queryset, False
        by_customer = customer_access.get_search_filter(request.user, search_term)
        return queryset.filter(by_customer), False

    @admin.display(description="expires")
    def expiry(self, card: SavedCard) -> str:
        return f"{card.exp_month:02}/{card.exp_year}"
