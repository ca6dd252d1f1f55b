"""The list of the lines of the ledger: from a figure of a report to its bookings."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts.admin.center_scope import CenterTimeMixin
from accounts.admin.date_range import DateRangeFilter
from payments.admin.lists import link_reservation
from payments.ledger.accounts import BILL, INCOME, MONEY_ACCOUNTS, Account
from payments.models import LedgerLine
from payments.statements import COLUMNS, build_row, describe_accounts
from roombook import dates
from roombook.backoffice.list_export import ListExportMixin
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.ids import parse_id

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
        if self.value() not in dict(self.lookup_choices):
            return queryset
        _, accounts = GROUPS.get(str(self.value()), ("", [self.value()]))
        changed = Q()
        for account in accounts:
            changed |= Q(**{f"{account}__isnull": False})
        return queryset.filter(changed)


@admin.register(LedgerLine)
class LedgerLineAdmin(ListExportMixin, ReadOnlyMixin, CenterTimeMixin, ModelAdmin):
    list_display = (
        *("day", "event", "reservation_link", "center", "changed_accounts"),
        *("recognized_on", "cause"),
    )
    list_display_links = ("day",)
    fields = (
        *("local_time", "event", "reservation_link", "center", "changed_accounts"),
        *("day", "meeting_day", "recognized_on", "cause", "by", "is_test"),
    )
    readonly_fields = ("local_time", "event", "reservation_link", "changed_accounts")
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

    @admin.display(description="debits and credits")
    def changed_accounts(self, line: LedgerLine) -> str:
        return describe_accounts(line)

    @admin.display(description="at")
    def local_time(self, line: LedgerLine) -> str:
        return dates.format_datetime(line.at, line.center.zone)

    def get_export_row(self, row: LedgerLine) -> tuple[CellValue, ...]:
        return build_row(row)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # Reports select several centers.
        return lookup == "center__in" or super().lookup_allowed(lookup, value, request)
