"""The list of the lines of the ledger: from a figure of a report to its bookings."""

from collections.abc import Collection
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts.admin.center_scope import CenterTimeMixin
from accounts.admin.date_range import DateRangeFilter
from payments.admin.lists import link_reservation, link_row
from payments.ledger.accounts import BILL, INCOME, MONEY_ACCOUNTS, Account
from payments.ledger.models import add_accounts
from payments.models import LedgerLine
from payments.statements import COLUMNS, build_row, describe_accounts
from roombook import dates
from roombook.backoffice.list_export import ListExportMixin
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.ids import parse_id
from roombook.money import format_amount, from_hundredths

# Accounts that a report adds up, by the value of the filter.
GROUPS = {
    "money": ("All money", MONEY_ACCOUNTS),
    "income": ("All income", INCOME),
    "bill": ("Income and tax", BILL),
}


class AccountFilter(DropdownFilter):
    """Selects the lines that change an account, or one of a group."""

    title = "account"
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        groups = [(name, title) for name, (title, _) in GROUPS.items()]
        return [*((account.value, str(account.label)) for account in Account), *groups]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        accounts = get_accounts(self.value())
        changed = Q()
        for account in accounts:
            changed |= Q(**{f"{account}__isnull": False})
        return queryset.filter(changed)


def get_accounts(value: str | None) -> Collection[Account]:
    """The accounts that a value of the filter selects; none if there is no such value."""
    if value in GROUPS:
        _, accounts = GROUPS[value]
        return accounts
    return [each for each in Account if each == value]


@admin.register(LedgerLine)
class LedgerLineAdmin(ListExportMixin, ReadOnlyMixin, CenterTimeMixin, ModelAdmin):
    list_display = (
        *("day", "event", "reservation_link", "center", "changed_accounts"),
        *("recognized_on", "cause_link"),
    )
    list_display_links = ("day",)
    fields = (
        *("local_time", "event", "reservation_link", "center", "changed_accounts"),
        *("day", "meeting_day", "recognized_on", "cause_link", "by", "is_test"),
    )
    readonly_fields = (
        *("local_time", "event", "reservation_link", "changed_accounts", "cause_link"),
    )
    list_before_template = "admin/payments/ledger_sum.html"
    list_filter = (
        *(AccountFilter, ("day", DateRangeFilter)),
        ("center", AutocompleteFilter),
        ("reservation__room__resource_type", AutocompleteFilter),
        *(("kind", ChoicesDropdownFilter), "is_test"),
    )
    list_filter_submit = True
    list_select_related = ("center", "reservation")
    ordering = ("-day", "-pk")
    sortable_by = ()
    search_fields = ("reservation",)
    search_help_text = "Reservation"
    export_columns = tuple(SheetColumn(name, 16) for name in COLUMNS)

    def search(self, request: HttpRequest, rows: QuerySet, words: str) -> QuerySet:
        return rows.filter(reservation=parse_id(words.removeprefix("#")) or 0)

    @admin.display(description="event")
    def event(self, line: LedgerLine) -> str:
        return line.get_kind_display()

    @admin.display(description="reservation")
    def reservation_link(self, line: LedgerLine) -> str:
        return link_reservation(line.reservation_id)

    @admin.display(description="cause")
    def cause_link(self, line: LedgerLine) -> str | None:
        model, _, pk = line.cause.partition(" ")
        return link_row(f"payments_{model}", pk, line.cause) if pk else None

    @admin.display(description="debits and credits")
    def changed_accounts(self, line: LedgerLine) -> str:
        return describe_accounts(line)

    @admin.display(description="at")
    def local_time(self, line: LedgerLine) -> str:
        return dates.format_datetime(line.at, line.center.zone)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Add up what the report's figure shows: the chosen account of all lines of the list."""
        response = super().changelist_view(request, extra_context)
        accounts = get_accounts(request.GET.get(AccountFilter.parameter_name))
        if accounts and isinstance(response, TemplateResponse) and response.context_data:
            lines = response.context_data["cl"].queryset.order_by().values_list("currency")
            response.context_data["ledger_sum"] = ", ".join(
                format_amount(from_hundredths(amount), currency)
                for currency, amount in lines.annotate(sum=Sum(add_accounts(accounts)))
            )
        return response

    def get_export_row(self, row: LedgerLine) -> tuple[CellValue, ...]:
        return build_row(row)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # Reports select several centers.
        return lookup == "center__in" or super().lookup_allowed(lookup, value, request)
