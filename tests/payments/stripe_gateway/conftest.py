"""The Stripe gateway with a fake Stripe server."""

import pytest

from payments import gateways


@pytest.fixture
def gateway(stripe_server):
    return gateways.get_current_gateway()
