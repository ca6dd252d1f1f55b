"""Cards and authorizations for tests of gateways."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from payments import lifecycle
from payments.cards import parse_card
from payments.gateway_results import record_gateway_result

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
TEN = Decimal("10.00")
MINUTE = timedelta(minutes=1)
# A card as the domain receives it.
INFO = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "credit_card_number": "4242424242424242",
    "expiration_date": datetime(2031, 1, 1, tzinfo=UTC),
}


def card(number="4242424242424242"):
    """A card that is valid by the clock, which the fake Stripe server reads too."""
    now = timezone.now()
    return parse_card(
        {
            **INFO,
            "credit_card_number": number,
            "security_code": "1234" if number.startswith("37") else "123",
            "expiration_date": datetime(now.year + 4, 1, 1, tzinfo=UTC),
            "billing_address": {"street1": "1 Main Street", "city": "Denver", "country": "US"},
        },
        now=now,
    )


def authorize(gateway, key, source=None, amount=TEN):
    return gateway.authorize(
        key=key,
        amount=amount,
        currency="USD",
        source=source or card(),
        description="Reservation 1",
    )


def card_of(user, **fields):
    """The card that the user has submitted."""
    return lifecycle.get_payment_source(
        user, use_saved=False, payment_info={**INFO, **fields}, now=NOW
    )


def authorized(payment, user):
    """Authorize a payment with a card of the user, and store that."""
    outcome = lifecycle.authorize_payment(
        payment, card_of(user), description="Reservation 1", on_session=False
    )
    return record_gateway_result(payment, outcome, now=NOW + MINUTE)
