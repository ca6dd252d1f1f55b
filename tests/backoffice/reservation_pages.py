"""Helpers for tests of the list and the page of reservations."""

import datetime as dt

from django.urls import reverse

LIST = reverse("admin:reservations_reservation_changelist")
DAY = dt.timedelta(days=1)


def reservation_url(reservation):
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def action_url(reservation, name):
    return reverse("admin:reservations_reservation_action", args=[reservation.pk, name])


def confirm(office, reservation, name, **typed):
    return office.post(action_url(reservation, name), {"confirmed": "yes", **typed})


def offered(office, reservation):
    return [action.name for action in office.get(reservation_url(reservation)).context["actions"]]
