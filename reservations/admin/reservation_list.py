"""The list of reservations, also where there are a million of them.

Whatever is asked leads through an index: the list itself through `start`, a center through its
rooms, a customer through their account. Nothing is counted to its end, and no choice of a filter is
read from the table.
"""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import customer_access, roles, user_search
from reservations.admin.date_filter import StartDateFilter
from reservations.admin.formatting import format_datetime
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates, money
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id


class ReservationListMixin(ModelAdminBase):
    """The part of the ModelAdmin that makes the list. Stands before ModelAdmin among the bases."""

    list_display = ("number", "state", "when", "place", "customer", "total")
    list_display_links = ("number", "when")
    # To sort a million rows by what has no index takes seconds.
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
    # What is searched is said in `get_search_results`; without these there is no box.
    search_fields = ("=id",)
    search_help_text = "Number, e-mail, name or company"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Reservation], search_term: str
    ) -> tuple[QuerySet[Reservation], bool]:
        """By number, or by the customers that the words lead to: never through all rows."""
        words = search_term.strip()
        if not words:
            return queryset, False
        if (pk := parse_id(words.removeprefix("#"))) is not None:
            return queryset.filter(pk=pk), False
        found = user_search.matching_prefix(
            words,
            by_address=roles.has_permission(request.user, customer_access.VIEW),
            among=customer_access.get_customer_filter(
                request.user, permission="reservations.view_reservation"
            ),
        )
        return queryset.filter(user__in=found), False

    # Columns

    class Media:
        css = {"all": ("reservations/reservation.css",)}

    @admin.display(description="no.")
    def number(self, reservation: Reservation) -> int:
        return reservation.pk

    @admin.display(description="status")
    def state(self, reservation: Reservation) -> str:
        """The status, and of a draft until when its room is kept."""
        if not reservation.is_new:
            return render_status_badge(reservation)
        held = "hold lapsed"
        if reservation.is_held_at(timezone.now()) and reservation.hold_until is not None:
            held = f"until {format_datetime(reservation, reservation.hold_until)}"
        return format_html(
            '{}<br><small class="backoffice-quiet">{}</small>',
            render_status_badge(reservation),
            held,
        )

    @admin.display(ordering="start", description="center time")
    def when(self, reservation: Reservation) -> str:
        zone = reservation.room.center.zone
        return format_html(
            '<span class="list-line">{}</span><br><span class="list-line">{}</span>',
            dates.format_day(reservation.start.astimezone(zone)),
            dates.format_hours(reservation.start, reservation.end, zone),
        )

    @admin.display(description="room")
    def place(self, reservation: Reservation) -> str:
        room = reservation.room
        return format_html(
            '<span class="list-line">{}</span><br>'
            '<small class="backoffice-quiet list-line">{}</small>',
            room.name,
            room.center.name,
        )

    @admin.display(description="customer")
    def customer(self, reservation: Reservation) -> str:
        user = reservation.user
        about = user.company_name or ""
        return format_html(
            '<span class="list-line">{}</span><br>'
            '<small class="backoffice-quiet list-line">{}</small>',
            user.get_full_name(),
            about,
        )

    @admin.display
    def total(self, reservation: Reservation) -> str:
        return money.format_amount(reservation.total_cost)


def render_status_badge(reservation: Reservation) -> str:
    return format_html(
        '<span class="backoffice-status backoffice-status--{}">{}</span>',
        reservation.status,
        Status(reservation.status).label,
    )
