"""A fake Stripe API on this machine: the operations that our gateway uses, as documented.

    with StripeServer() as server:
        settings.STRIPE_API_BASE = server.url

server.py       HTTP, idempotency keys, faults, and what tests read and cause
operations.py   Stripe's operations on customers, payment methods, intents, charges, refunds, setups
routes.py       the requests that Stripe knows, and their parameters
cards.py        what charging each documented test number does
errors.py       errors in Stripe's format

Parameters that the SDK's API version does not have are refused. No card number is stored, only
what charging it does.
"""

from tests.stripe_server.server import StripeServer

__all__ = ["StripeServer"]
