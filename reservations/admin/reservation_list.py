"""The list of reservations, which stays fast with a million rows.

Every search and filter uses an index: the list itself by ``start``, a center by its rooms, a
customer by their account. Rows are not counted beyond a limit, and filters do not read their
choices from the table.
"""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import roles, user_search
from reservations.admin.date_filter import StartDateFilter
from reservations.admin.formatting import format_datetime
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates, money
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id


class ReservationListMixin(ModelAdminBase):
    """The list of the ModelAdmin. Comes before ModelAdmin in the bases."""

    list_display = ("number", "state", "when", "place", "customer", "total")
    list_display_links = ("number", "when")
    # Sorting a million rows without an index takes seconds.
    sortable_by = ("when",)
    list_filter = (
        StartDateFilter,
        ("status", ChoicesDropdownFilter),
        ("room__center", AutocompleteFilter),
        ("promo_code", AutocompleteFilter),
        ("partner", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("room__center", "user")
    ordering = ("-start", "-pk")
    # `get_search_results` does the search; without search_fields there is no search box.
    search_fields = ("=id",)
    search_help_text = "Number, e-mail, name or company"

    class Media:
        css = {"all": ("reservations/reservation.css",)}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Reservation], search_term: str
    ) -> tuple[QuerySet[Reservation], bool]:
        """Search by number, else by customer; never scan all reservations."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (pk := parse_id(term.removeprefix("#"))) is not None:
            return queryset.filter(pk=pk), False
        by_address = roles.has_permission(request.user, roles.VIEW_USER)
        users = user_search.matching_prefix(term, by_address=by_address)
        return queryset.filter(user__in=users), False

    @admin.display(description="no.")
    def number(self, reservation: Reservation) -> int:
        return reservation.pk

    @admin.display(description="status")
    def state(self, reservation: Reservation) -> str:
        """The status, and until when a draft holds its room."""
        badge = render_status_badge(reservation)
        if not reservation.is_new:
            return badge
        hold = "hold expired"
        if reservation.is_held_at(timezone.now()) and reservation.hold_until is not None:
            hold = f"held until {format_datetime(reservation, reservation.hold_until)}"
        return format_html('{}<br><small class="backoffice-quiet">{}</small>', badge, hold)

    @admin.display(ordering="start", description="local time")
    def when(self, reservation: Reservation) -> str:
        zone = reservation.room.center.zone
        return format_html(
            '<span class="list-line">{}</span><br><span class="list-line">{}</span>',
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


def render_status_badge(reservation: Reservation) -> str:
    return format_html(
        '<span class="backoffice-status backoffice-status--{}">{}</span>',
        reservation.status,
        Status(reservation.status).label,
    )


def _render_two_lines(first: str, second: str) -> str:
    return format_html(
        '<span class="list-line">{}</span><br><small class="backoffice-quiet list-line">{}</small>',
        first,
        second,
    )
