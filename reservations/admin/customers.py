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
from reservations.admin.formatting import when
from reservations.models import Reservation
from roombook import money

VIEW, ADD = "reservations.view_reservation", "reservations.add_reservation"
LAST = 10


@dataclass(frozen=True, slots=True)
class Booking:
    reservation: Reservation
    when: str
    total: str


@dataclass(frozen=True, slots=True)
class Bookings:
    """What a customer booked at the centers of whoever asks."""

    last: list[Booking]
    billed: str
    count: int
    is_partial: bool
    all: str
    new: str


@admin.register(User)
class CustomerAdmin(UserAdmin):
    def about(self, request: HttpRequest, user: User) -> dict[str, Any]:
        if not roles.may(request.user, VIEW):
            return {}
        theirs = Reservation.objects.of(user).filter(roles.scope(request.user, VIEW))
        last = theirs.select_related("room__center").order_by("-start", "-pk")[:LAST]
        # The same reservations as in the reports of revenue.
        billed = theirs.earning().filter(currency=settings.CURRENCY)
        sums = billed.aggregate(count=Count("pk"), billed=Sum("total_cost"))
        everything = reverse("admin:reservations_reservation_changelist")
        new = reverse("admin:reservations_reservation_add")
        return {
            "bookings": Bookings(
                last=[Booking(row, when(row), money.display(row.total_cost)) for row in last],
                billed=money.display(sums["billed"] or 0),
                count=sums["count"],
                is_partial=roles.centers_of(request.user, VIEW) is not None,
                all=f"{everything}?{urlencode({'q': user.email})}",
                new=f"{new}?{urlencode({'user': user.pk})}"
                if user.is_active and roles.may(request.user, ADD)
                else "",
            )
        }
