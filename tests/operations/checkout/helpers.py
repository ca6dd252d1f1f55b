"""Helpers for tests of checkout."""

from reservations.models import Reservation
from tests.factories_reservations import CARD, DECLINED_NUMBER

PATH = "/api/reservations/checkout"
BAD_CARD = {**CARD, "CreditCardNumber": DECLINED_NUMBER}


def status_of(reservation):
    return Reservation.objects.get(pk=reservation.pk).status


def refused(response, status, code):
    assert response.status_code == status
    error = response.json()["Error"]
    assert response.json() == {"Success": False, "Error": error}
    assert error["Summary"] == code
    return error
