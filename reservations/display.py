"""How the back office displays times and places of reservations, and the URLs of their pages.

Templates load its filters by `{% load reservations %}`.
"""

import datetime as dt

from babel.dates import get_timezone_name
from django.conf import settings
from django.template import Library
from django.urls import reverse
from django.utils.html import format_html

from accounts.models import User
from centers.models import Center
from reservations.models import ChosenService, Reservation
from reservations.models.status import Status
from roombook import dates, money

register = Library()
register.filter("amount", money.format_amount)


@register.filter("place_and_time")
def format_place_and_time(reservation: Reservation) -> str:
    """``Boardroom at Union Station, Mon 2027-03-01 09:00 - 17:00``"""
    room = reservation.room
    return f"{room.name} at {room.center.name}, {format_time_span(reservation)}"


@register.filter("customer_name")
def format_customer(reservation: Reservation) -> str:
    """The name of the customer without their address, for everybody who sees reservations."""
    user = reservation.user
    return user.get_full_name() or user.company_name or f"Customer {user.pk}"


@register.filter("staff_name")
def format_staff(user: User) -> str:
    """The name of a member of staff, or the e-mail address."""
    return user.get_full_name() or user.email


@register.filter("service_amounts")
def format_service(service: ChosenService) -> str:
    """A service of a booking with its amounts: ``Lunch buffet: 4, 1.5 h``"""
    amounts = [] if service.quantity is None else [str(service.quantity)]
    if service.duration_hours is not None:
        amounts.append(f"{service.duration_hours.normalize():f} h")
    return f"{service.service.name}: {', '.join(amounts)}" if amounts else service.service.name


@register.filter("hours")
def format_hours(reservation: Reservation) -> str:
    """The same without the day: ``09:00 - 17:00``"""
    return dates.format_hours(reservation.start, reservation.end, reservation.room.center.zone)


@register.filter("time_span")
def format_time_span(reservation: Reservation) -> str:
    """The local time of the meeting: ``Mon 2027-03-01 09:00 - 17:00``"""
    return dates.format_span(reservation.start, reservation.end, reservation.room.center.zone)


def format_datetime(reservation: Reservation, at: dt.datetime) -> str:
    """The local time at the center of a reservation: ``Mon 2027-03-01 09:00 MST``"""
    return dates.format_datetime(at, reservation.room.center.zone)


def format_time_zone(center: Center, at: dt.datetime) -> str:
    """The name and the current abbreviation of a time zone: ``Mountain Time (MST)``"""
    local = at.astimezone(center.zone)
    name = get_timezone_name(local, width="long", zone_variant="generic", locale=settings.LOCALE)
    return f"{name} ({local:%Z})"


def format_status(reservation: Reservation, *, now: dt.datetime) -> str:
    """The status, in more detail for a draft without a hold, and while the bank is needed."""
    if _is_expired_draft(reservation, now):
        return "Expired draft"
    if reservation.waiting_payment is not None:
        return "Waiting for the customer's bank"
    return Status(reservation.status).label


@register.filter("status_badge")
def render_status_badge(reservation: Reservation, now: dt.datetime) -> str:
    return format_html(
        '<span class="backoffice-status backoffice-status--{}">{}</span>',
        "Expired" if _is_expired_draft(reservation, now) else reservation.status,
        format_status(reservation, now=now),
    )


def _is_expired_draft(reservation: Reservation, now: dt.datetime) -> bool:
    return reservation.is_new and not reservation.is_held_at(now)


def get_reservation_url(reservation_id: int) -> str:
    return reverse("admin:reservations_reservation_change", args=[reservation_id])
