"""Cards and authorizations for tests of gateways."""

from datetime import UTC, datetime
from decimal import Decimal

from django.utils import timezone

from payments.cards import parse_card

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
TEN = Decimal("10.00")


def card(number="4242424242424242"):
    """A card that is valid by the clock, which the fake Stripe server reads too."""
    now = timezone.now()
    return parse_card(
        {
            "first_name": "Ada",
            "last_name": "Lovelace",
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
