"""Helpers for tests of webhooks."""

from reservations.booking import integrity
from tests.factories_reservations import NOW

PATH = "/webhooks/stripe"
SECRET = "whsec_roombook"


def find_problems():
    return [str(each) for each in integrity.find_problems(now=NOW)]
