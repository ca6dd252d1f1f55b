"""Helpers for tests of checkout."""

from reservations.models import Reservation
from tests.factories_reservations import CARD, DECLINED_NUMBER

BAD_CARD = {**CARD, "CreditCardNumber": DECLINED_NUMBER}


def status_of(reservation):
    return Reservation.objects.get(pk=reservation.pk).status
