"""Helpers for tests of webhooks."""

from payments import gateways
from reservations.booking import integrity
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import NOW, VALID_NUMBER
from tests.payments.gateway_helpers import card

PATH = "/webhooks/stripe"
SECRET = "whsec_roombook"


def find_problems():
    return [str(each) for each in integrity.find_problems(now=NOW)]


def save_card(user, number=VALID_NUMBER):
    """Save a card at Stripe, as a payment setup does."""
    reference = gateways.get_current_gateway().store_card(card(number), customer=str(user.pk))
    SavedCardFactory(user=user, gateway="stripe", reference=reference, saved_by_setup=True)
