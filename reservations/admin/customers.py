"""The page of an account, with what it booked."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.urls import reverse

from accounts import roles
from accounts.admin.users import UserAdmin
from accounts.models import User
from reservations.admin.formatting import format_time_span
from reservations.models import Reservation
from roombook import money

VIEW, ADD = "reservations.view_reservation", "reservations.add_reservation"
MAX_BOOKINGS = 10


@dataclass(frozen=True, slots=True)
class CustomerBooking:
    reservation: Reservation
    when: str
    total: str


@dataclass(frozen=True, slots=True)
class CustomerBookings:
    """What a customer booked at the centers of whoever asks."""

    last: list[CustomerBooking]
    billed: str
    count: int
    is_partial: bool
    all: str
    new: str


@admin.register(User)
class CustomerAdmin(UserAdmin):
    def get_account_context(self, request: HttpRequest, user: User) -> dict[str, Any]:
        if not roles.has_permission(request.user, VIEW):
            return {}
        theirs = Reservation.objects.for_user(user).filter(
            roles.get_center_filter(request.user, VIEW)
        )
        last = theirs.select_related("room__center").order_by("-start", "-pk")[:MAX_BOOKINGS]
        # The same reservations as in the reports of revenue.
        billed = theirs.counting_as_revenue().filter(currency=settings.CURRENCY)
        sums = billed.aggregate(count=Count("pk"), billed=Sum("total_cost"))
        everything = reverse("admin:reservations_reservation_changelist")
        new = reverse("admin:reservations_reservation_add")
        return {
            "bookings": CustomerBookings(
                last=[
                    CustomerBooking(row, format_time_span(row), money.format_amount(row.total_cost))
                    for row in last
                ],
                billed=money.format_amount(sums["billed"] or 0),
                count=sums["count"],
                is_partial=roles.get_permitted_centers(request.user, VIEW) is not None,
                all=f"{everything}?{urlencode({'q': user.email})}",
                new=f"{new}?{urlencode({'user': user.pk})}"
                if user.is_active and roles.has_permission(request.user, ADD)
                else "",
            )
        }
