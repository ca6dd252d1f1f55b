"""The list of reservations, next start first, which stays fast with a million rows.

Every search and filter uses an index: the list itself by ``start``, a center by its rooms, a
customer by their account. Rows are not counted beyond a limit, and filters do not read their
choices from the table.
"""

from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import customer_access
from accounts.admin.center_scope import CenterScopedMixin
from accounts.admin.date_range import DateRangeFilter
from centers.models import Center
from reservations.desk.date_filter import StartDateFilter, is_latest_first
from reservations.display import (
    format_customer,
    format_datetime,
    format_place_and_time,
    format_status,
    render_status_badge,
)
from reservations.models import Reservation
from reservations.models.booking_fields import COLUMN_FIELDS
from reservations.models.querysets import get_next_first
from roombook import dates, money
from roombook.backoffice.list_export import DATETIME_NUMBER_FORMAT, ListExportMixin
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.ids import parse_id

EXPORTED_FIELDS = [each for each in COLUMN_FIELDS if each.export_width]


class ReservationListMixin(ListExportMixin, CenterScopedMixin):
    """The list of the ModelAdmin. Comes before ModelAdmin in the bases."""

    list_display = ("number", "state", "when", "place", "customer", "total")
    list_display_links = ("number", "when")
    # Sorting a million rows without an index takes seconds.
    sortable_by = ("when",)
    list_filter = (
        StartDateFilter,
        ("start", DateRangeFilter),
        ("status", ChoicesDropdownFilter),
        ("room__center", AutocompleteFilter),
        ("room", AutocompleteFilter),
        ("promo_code", AutocompleteFilter),
        ("partner", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("room__center", "user")
    search_fields = ("=id",)
    search_help_text = "Number, or name, company, e-mail or phone of the customer"

    export_columns = (
        *(SheetColumn("Number", 10), SheetColumn("Status", 18), SheetColumn("Hold", 30)),
        SheetColumn("Start (local)", 18, DATETIME_NUMBER_FORMAT),
        SheetColumn("End (local)", 18, DATETIME_NUMBER_FORMAT),
        *(SheetColumn("Time zone", 20), SheetColumn("Center", 24), SheetColumn("Room", 24)),
        *(SheetColumn("Customer", 24), SheetColumn("Company", 24)),
        *(SheetColumn(each.label, each.export_width) for each in EXPORTED_FIELDS),
        *(SheetColumn("Total", 12), SheetColumn("Currency", 10)),
    )

    class Media:
        css = {"all": ("reservations/reservation.css",)}

    def get_ordering(self, request: HttpRequest) -> tuple[str | OrderBy, ...]:
        # The parameters of the list's search, and of the search in the head of every page.
        if request.GET.get("q") or request.GET.get("s"):
            return get_next_first(timezone.now())
        return ("-start", "-pk") if is_latest_first(request) else ("start", "pk")

    def get_list_time_zone(self, request: HttpRequest) -> ZoneInfo:
        """The time zone of the list's room, if there is one."""
        room = parse_id(request.GET.get("room__id__exact"))
        if room is not None and (center := Center.objects.filter(rooms=room).first()):
            return center.zone
        return super().get_list_time_zone(request)

    def search(
        self, request: HttpRequest, rows: QuerySet[Reservation], words: str
    ) -> QuerySet[Reservation]:
        """Search by number, else by customer; never scan all reservations."""
        if (pk := parse_id(words.removeprefix("#"))) is not None:
            by_number = rows.filter(pk=pk)
            # Digits may also be those of a phone number.
            if words.startswith("#") or by_number.exists():
                return by_number
        return rows.filter(customer_access.get_search_filter(request.user, words))

    result_icon = "event"

    def get_result_title(self, row: Reservation) -> str:
        return f"Reservation {row.pk}, {format_customer(row)}"

    def get_result_description(self, row: Reservation) -> str:
        return f"{format_place_and_time(row)}, {format_status(row, now=timezone.now())}"

    @admin.display(description="no.")
    def number(self, reservation: Reservation) -> int:
        return reservation.pk

    @admin.display(description="status")
    def state(self, reservation: Reservation) -> str:
        """The status, and until when a draft holds its room."""
        badge = render_status_badge(reservation, now=timezone.now())
        if not (hold := _describe_hold(reservation)):
            return badge
        return _render_two_lines(badge, hold)

    @admin.display(ordering="start", description="local time")
    def when(self, reservation: Reservation) -> str:
        zone = reservation.room.center.zone
        return format_html(
            '<div class="list-lines"><span>{}</span><span>{}</span></div>',
            dates.format_day(reservation.start.astimezone(zone)),
            dates.format_hours(reservation.start, reservation.end, zone),
        )

    @admin.display(description="room")
    def place(self, reservation: Reservation) -> str:
        return _render_two_lines(reservation.room.name, reservation.room.center.name)

    @admin.display(description="customer")
    def customer(self, reservation: Reservation) -> str:
        user = reservation.user
        return _render_two_lines(user.get_full_name(), user.company_name or "")

    @admin.display
    def total(self, reservation: Reservation) -> str:
        return money.format_amount(reservation.total_cost)

    def get_export_row(self, row: Reservation) -> tuple[CellValue, ...]:
        center = row.room.center
        start, end = row.span.to_local(center.zone)
        return (
            *(row.pk, format_status(row, now=timezone.now()), _describe_hold(row), start, end),
            *(center.time_zone_id, center.name, row.room.name),
            *(row.user.get_full_name(), row.user.company_name or ""),
            *(getattr(row, each.name) for each in EXPORTED_FIELDS),
            *(row.total_cost, row.currency),
        )


def _describe_hold(reservation: Reservation) -> str:
    """Until when a draft holds its room; "" if it is no draft."""
    if not reservation.is_new:
        return ""
    if reservation.is_held_at(timezone.now()) and reservation.hold_until is not None:
        return f"held until {format_datetime(reservation, reservation.hold_until)}"
    return "the room is not held"


def _render_two_lines(first: str, second: str) -> str:
    return format_html(
        '<div class="list-lines"><span>{}</span><small class="backoffice-quiet">{}</small></div>',
        first,
        second,
    )
