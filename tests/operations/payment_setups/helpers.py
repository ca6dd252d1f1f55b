"""Names for the tests of payment setups."""

from datetime import UTC, datetime

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
CREATE = "/api/account/create-payment-setup"
COMPLETE = "/api/account/complete-payment-setup"
