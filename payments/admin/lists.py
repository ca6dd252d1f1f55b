"""What the lists and pages of payments, refunds and disputes share: columns, search and filters."""

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.contrib.filters.admin import DropdownFilter

from accounts import customer_access
from accounts.admin.center_scope import CenterTimeMixin
from accounts.admin.date_range import DAY, PeriodFilter
from payments import gateways
from payments.models import Dispute, Payment, Refund, SavedCard, UnknownPayment
from roombook import dates
from roombook.backoffice.list_export import DATETIME_NUMBER_FORMAT
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.dates import add_months
from roombook.ids import parse_id
from roombook.money import format_amount

PaymentRow = Payment | Refund | Dispute

# Columns of exported files.
BOOKING_COLUMNS = (
    *(SheetColumn("Reservation", 12), SheetColumn("Customer", 24), SheetColumn("Company", 24)),
    *(SheetColumn("Center", 24), SheetColumn("Time zone", 20)),
)
CREATED_COLUMN = SheetColumn("Created (local)", 18, DATETIME_NUMBER_FORMAT)
# The latest ones of each kind of match.
MAX_FOUND = 500
SEARCH_HELP = (
    "Number, reservation, amount, last four digits, gateway reference, or name, e-mail or phone"
)
AMOUNT = re.compile(r"\W?\s*(\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(\.\d{1,2})?", re.ASCII)


class WayMixin:
    """A column with the way of payment, in the words of people."""

    @admin.display(description="paid by")
    def way(self, row: Payment | SavedCard | UnknownPayment) -> str:
        return gateways.GATEWAY_LABELS.get(row.gateway, row.gateway)


class FeeMixin:
    """A column with the fee of the gateway, in the currency of the payment."""

    @admin.display(description="fee of the gateway")
    def formatted_fee(self, row: Payment | Refund | Dispute) -> str:
        if row.fee is None:
            # Not known yet; or nothing was charged, as without a gateway.
            return "-"
        currency = row.payment.currency if isinstance(row, Refund) else row.currency
        return format_amount(row.fee, currency)


class PaymentListMixin(FeeMixin, CenterTimeMixin):
    """Lists rows with their reservation, customer and center; times are those of the center.

    `to_payment` is the lookup path from a row to its payment. List this mixin before ModelAdmin.
    """

    to_payment = ""
    # Sorting a million rows by a column without an index takes seconds.
    sortable_by: ClassVar[tuple[str, ...]] = ("created",)
    search_help_text = SEARCH_HELP

    @property
    def to_reservation(self) -> str:
        return f"{self.to_payment}reservation"

    result_icon = "payments"

    def get_result_title(self, row: PaymentRow) -> str:
        return f"{str(self.opts.verbose_name).capitalize()} {row.pk}, {row.formatted_amount}"

    def get_result_description(self, row: PaymentRow) -> str:
        return f"{self.customer(row)}, reservation {get_payment(row).reservation_id}"

    def get_list_select_related(self, request: HttpRequest) -> tuple[str, ...]:
        return (f"{self.to_reservation}__room__center", f"{self.to_reservation}__user")

    # --- Columns

    @admin.display(description="no.")
    def number(self, row: PaymentRow) -> int:
        return row.pk

    @admin.display(description="reservation")
    def reservation_link(self, row: PaymentRow) -> str:
        return link_reservation(get_payment(row).reservation_id)

    @admin.display(description="customer")
    def customer(self, row: PaymentRow) -> str:
        user = get_payment(row).reservation.user
        return ", ".join(filter(None, (user.get_full_name(), user.company_name)))

    @admin.display(description="center")
    def center(self, row: PaymentRow) -> str:
        return get_payment(row).reservation.room.center.name

    # --- Search: each kind of term is answered by an index

    def search(self, request: HttpRequest, rows: QuerySet, words: str) -> QuerySet:
        values = {**parse_payment_search(words), "key": _parse_uuid(words)}
        columns = {"pk", *(field.name for field in self.opts.get_fields())}
        lookups = {name: value for name, value in values.items() if name in columns}
        if self.to_payment:
            lookups |= {f"{self.to_payment}{name}": value for name, value in values.items()}
        lookups[self.to_reservation] = values["pk"]
        found = find_by_columns(rows, lookups)
        if found or words.startswith("#"):
            return rows.filter(pk__in=found)
        # Digits may also be those of a phone number.
        customer = f"{self.to_reservation}__user"
        return rows.filter(customer_access.get_search_filter(request.user, words, customer))


def get_payment(row: PaymentRow) -> Payment:
    return row if isinstance(row, Payment) else row.payment


def get_zone(row: PaymentRow) -> ZoneInfo:
    return get_payment(row).reservation.room.center.zone


def show_local(column: str, description: str, *, ordering: str | None = None) -> Any:
    """A column of a list with a time in the time zone of the center; None is shown as a dash."""

    @admin.display(description=description, ordering=ordering)
    def show(page: Any, row: PaymentRow) -> str | None:
        at = getattr(row, column)
        return dates.format_datetime(at, get_zone(row)) if at else None

    return show


def get_local(row: PaymentRow, at: dt.datetime | None) -> dt.datetime | None:
    """The time in the time zone of the center, for an exported cell."""
    return at.astimezone(get_zone(row)).replace(tzinfo=None) if at else None


def link_reservation(pk: int) -> str:
    return link_row("reservations_reservation", pk, str(pk))


def link_row(page: str, pk: int | str, text: str) -> str:
    url = reverse(f"admin:{page}_change", args=[pk])
    return format_html('<a class="underline" href="{}">{}</a>', url, text)


def get_booking_cells(row: PaymentRow) -> tuple[CellValue, ...]:
    """The exported cells of BOOKING_COLUMNS."""
    reservation = get_payment(row).reservation
    user, center = reservation.user, reservation.room.center
    return (
        *(reservation.pk, user.get_full_name(), user.company_name or ""),
        *(center.name, center.time_zone_id),
    )


def parse_payment_search(term: str) -> dict[str, object]:
    """The columns of a payment that a search may mean, with their value or None."""
    amount = AMOUNT.fullmatch(term)
    return {
        "pk": parse_id(term.removeprefix("#")),
        "amount": Decimal(amount[1].replace(",", "") + (amount[2] or "")) if amount else None,
        "card_last4": term if re.fullmatch(r"\d{4}", term, re.ASCII) else None,
        "reference": term,
    }


def find_by_columns(rows: QuerySet, lookups: Mapping[str, object]) -> set[int]:
    """The ids of the rows with one of these values. Joined by OR, they would scan the table."""
    found: set[int] = set()
    for name, value in lookups.items():
        if value is not None:
            matches = rows.filter(**{name: value}).order_by("-pk")
            found.update(matches.values_list("pk", flat=True)[:MAX_FOUND])
    return found


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def add_quarters(day: dt.date, count: int) -> dt.date:
    """The first day of the quarter that is so many quarters later (or earlier, if negative)."""
    return add_months(day, 3 * count - (day.month - 1) % 3)


class CreatedFilter(PeriodFilter):
    """Filters by the day of creation."""

    title = "created"
    parameter_name = "made"
    field_path = "created_at"
    periods = {
        "today": ("Today", lambda day: (day, None)),
        "week": ("Last 7 days", lambda day: (day - 6 * DAY, None)),
        "month": ("This month", lambda day: (add_months(day, 0), None)),
        "last-month": ("Last month", lambda day: (add_months(day, -1), add_months(day, 0))),
        "quarter": ("This quarter", lambda day: (add_quarters(day, 0), None)),
        "last-quarter": ("Last quarter", lambda day: (add_quarters(day, -1), add_quarters(day, 0))),
    }


class GatewayFilter(DropdownFilter):
    """Filters by gateway. The choices are the known gateways, not those in a million rows."""

    title = "paid by"
    parameter_name = "gateway"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [*gateways.GATEWAY_LABELS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        is_known = self.value() in gateways.GATEWAY_LABELS
        return queryset.filter(gateway=self.value()) if is_known else queryset
