"""What an owner does first, on the dashboard until the first booking (B18)."""

from typing import NamedTuple

from django.conf import settings
from django.db.models import Q
from django.urls import reverse

from accounts import roles
from accounts.models import StaffMember, User
from centers.models import Center, MeetingRoom, ResourceType
from reservations.models import Reservation, Seller
from reservations.models.status import BOOKED_STATUSES


class FirstStep(NamedTuple):
    """Something to set up. `offers_samples`: one click adds usual rows."""

    title: str
    detail: str
    url: str
    is_done: bool
    offers_samples: bool = False


def find_first_steps(user: User) -> list[FirstStep]:
    """The steps for who may set up everything; none once somebody has booked a room.

    One query, once there is a booking.
    """
    if not roles.has_permission_everywhere(user, "centers.add_center"):
        return []
    if Reservation.objects.filter(status__in=sorted(BOOKED_STATUSES)).exists():
        return []
    center = Center.objects.order_by("pk").first()
    center_url = reverse("admin:centers_center_add")
    if center is not None:
        center_url = reverse("admin:centers_center_change", args=[center.pk])
    is_open = Q(opening_hours__isnull=False) | Q(is_after_hours_support_enabled=True)
    return [
        FirstStep(
            "The company",
            f"Its name and address on receipts. Prices are in {settings.CURRENCY}.",
            reverse("admin:reservations_seller_add"),
            is_done=Seller.objects.exists(),
        ),
        FirstStep(
            "Types of rooms and services",
            "Customers filter by them.",
            reverse("admin:centers_resourcetype_add"),
            is_done=ResourceType.objects.filter(is_service=False).exists(),
            offers_samples=roles.has_permission_everywhere(user, "centers.add_resourcetype"),
        ),
        FirstStep(
            "A center",
            "Its address, tax, terms and opening hours: without hours it is closed.",
            center_url,
            is_done=Center.objects.filter(is_open).exists(),
        ),
        FirstStep(
            "Rooms and their prices",
            "On the page of the center: first a rate, then rooms that have it.",
            center_url,
            is_done=MeetingRoom.objects.on_offer().exists(),
        ),
        FirstStep(
            "Staff",
            "Invite them by e-mail, and give each a role.",
            reverse("admin:accounts_staffmember_add"),
            is_done=StaffMember.objects.exclude(pk=user.pk).exists(),
        ),
        FirstStep(
            "The first booking",
            "For a customer who calls, for example.",
            reverse("admin:reservations_reservation_add"),
            is_done=False,
        ),
    ]
