"""The page of a customer, with their bookings."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from accounts import roles
from accounts.models import User
from reservations.admin.customer_data import CustomerDataAdmin
from reservations.admin.formatting import format_time_span, render_status_badge
from reservations.models import Reservation
from roombook import money

# The latest bookings, which the page lists.
MAX_BOOKINGS = 10


@dataclass(frozen=True, slots=True)
class CustomerBooking:
    reservation: Reservation
    status: str
    when: str
    total: str


@dataclass(frozen=True, slots=True)
class CustomerBookings:
    """The bookings of a customer at the centers that the user may see.

    ``all`` and ``new`` are URLs; ``new`` is "" if the user may not book for the customer.
    """

    last: list[CustomerBooking]
    billed: str
    count: int
    is_partial: bool
    all: str
    new: str


@admin.register(User)
class CustomerAdmin(CustomerDataAdmin):
    """Adds the bookings to the page of an account."""

    def get_account_context(self, request: HttpRequest, user: User) -> dict[str, object]:
        context = super().get_account_context(request, user)
        if not roles.has_permission(request.user, roles.VIEW_RESERVATION):
            return context
        rows = Reservation.objects.for_user(user).filter(
            roles.get_center_filter(request.user, roles.VIEW_RESERVATION)
        )
        last = rows.select_related("room__center").order_by("-start", "-pk")[:MAX_BOOKINGS]
        # The same reservations as in the revenue report.
        billed = rows.counting_as_revenue().filter(currency=settings.CURRENCY)
        sums = billed.aggregate(count=Count("pk"), billed=Sum("total_cost"))
        list_url = reverse("admin:reservations_reservation_changelist")
        add_url = reverse("admin:reservations_reservation_add")
        return context | {
            "bookings": CustomerBookings(
                last=[
                    CustomerBooking(
                        reservation=row,
                        status=render_status_badge(row, now=timezone.now()),
                        when=format_time_span(row),
                        total=money.format_amount(row.total_cost),
                    )
                    for row in last
                ],
                billed=money.format_amount(sums["billed"] or 0),
                count=sums["count"],
                is_partial=roles.get_permitted_centers(request.user, roles.VIEW_RESERVATION)
                is not None,
                all=f"{list_url}?{urlencode({'q': user.email})}",
                new=f"{add_url}?{urlencode({'user': user.pk})}"
                if user.is_active and roles.has_permission(request.user, roles.ADD_RESERVATION)
                else "",
            )
        }
