"""Search and filters that the lists of payments, refunds and disputes share."""

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from accounts import roles, user_search
from payments import gateways
from payments.models import Dispute, Payment
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id

MAX_PAYMENTS_PER_REFERENCE = 10
SEARCH_HELP = "Reservation, key, gateway reference, e-mail or name"


class PaymentSearchMixin(ModelAdminBase):
    """Searches by reservation number, payment key, gateway reference or customer.

    Each kind of term is answered by an index. `to_payment` is the lookup path from a row of the
    list to its payment. List this mixin before ModelAdmin.
    """

    to_payment = ""
    # Sorting a million rows by a column without an index takes seconds.
    sortable_by: ClassVar[tuple[str, ...]] = ("created_at",)
    search_help_text = SEARCH_HELP

    @admin.display(description="no.")
    def number(self, row: Model) -> int:
        return int(row.pk)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if (pk := parse_id(term.removeprefix("#"))) is not None:
            return queryset.filter(**{f"{self.to_payment}reservation": pk}), False
        if (key := _parse_uuid(term)) is not None:
            by_key = Q(**{f"{self.to_payment}key": key})
            if self.to_payment and hasattr(queryset.model, "key"):
                by_key |= Q(key=key)
            return queryset.filter(by_key), False
        payments = Payment.objects.filter(reference=term).values_list("pk", flat=True)
        if found := list(payments[:MAX_PAYMENTS_PER_REFERENCE]):
            return queryset.filter(**{f"{self.to_payment}pk__in": found}), False
        if queryset.model is Dispute and queryset.filter(reference=term).exists():
            return queryset.filter(reference=term), False
        by_address = roles.has_permission(request.user, roles.VIEW_USER)
        customers = user_search.find_users(term, by_address=by_address)
        return queryset.filter(**{f"{self.to_payment}reservation__user__in": customers}), False


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


class CreatedFilter(DropdownFilter):
    """Filters by the day of creation in UTC, as all times of payments are shown."""

    title = "created (days in UTC)"
    parameter_name = "made"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [
            ("today", "Today"),
            ("week", "Last 7 days"),
            ("month", "This month"),
            ("last-month", "Last month"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
        first = today.replace(day=1)
        periods = {
            "today": (today, None),
            "week": (today - timedelta(days=6), None),
            "month": (first, None),
            "last-month": ((first - timedelta(days=1)).replace(day=1), first),
        }
        since, until = periods.get(self.value() or "", (None, None))
        if since is not None:
            queryset = queryset.filter(created_at__gte=since)
        return queryset.filter(created_at__lt=until) if until is not None else queryset


class GatewayFilter(DropdownFilter):
    """Filters by gateway. The choices are the known gateways, not those in a million rows."""

    title = "gateway"
    parameter_name = "gateway"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [(name, name.capitalize()) for name in gateways.GATEWAY_CLASSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        is_known = self.value() in gateways.GATEWAY_CLASSES
        return queryset.filter(gateway=self.value()) if is_known else queryset
