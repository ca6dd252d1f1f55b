"""Helpers for tests of single operations."""

from reservations.models import Reservation
from tests.factories_reservations import CARD, DECLINED_NUMBER

BAD_CARD = {**CARD, "CreditCardNumber": DECLINED_NUMBER}


def refused(response, status, code):
    """Check the envelope of an error, and return the error."""
    error = response.json()["Error"]
    assert (response.status_code, error["Summary"]) == (status, code)
    assert response.json() == {"Success": False, "Error": error}
    return error


def status_of(reservation):
    return Reservation.objects.get(pk=reservation.pk).status
