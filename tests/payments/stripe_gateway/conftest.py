"""The Stripe gateway with a fake Stripe server."""

import pytest

from payments import gateways
from tests.payments.gateway_helpers import NOW


@pytest.fixture(autouse=True)
def _clock(time_machine):
    """Let the clock run from NOW: the server refuses cards that have expired."""
    time_machine.move_to(NOW)


@pytest.fixture
def gateway(stripe_server):
    return gateways.get_current_gateway()
