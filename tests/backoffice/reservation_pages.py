"""Helpers for tests of the list and the page of reservations."""

import datetime as dt

from django.urls import reverse

from tests.factories_reservations import HOUR, START

LIST = reverse("admin:reservations_reservation_changelist")
DAY = dt.timedelta(days=1)


def reservation_url(reservation):
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def action_url(reservation, name):
    return reverse("admin:reservations_reservation_action", args=[reservation.pk, name])


def confirm(office, reservation, name, **typed):
    return office.post(action_url(reservation, name), {"confirmed": "yes", **typed})


def fill_slot(room, start=START, hours=3, **more):
    """The fields of the form that reschedules, for a center in Denver in winter."""
    local = start - 7 * HOUR
    end = local + hours * HOUR
    return {
        "room": room.pk,
        "start_0": f"{local:%Y-%m-%d}",
        "start_1": f"{local:%H:%M}",
        "end_0": f"{end:%Y-%m-%d}",
        "end_1": f"{end:%H:%M}",
        **more,
    }


def offered(office, reservation):
    return [action.name for action in office.get(reservation_url(reservation)).context["actions"]]
