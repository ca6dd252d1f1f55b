"""Payment setups of the sandbox, as the Gateway protocol describes them."""

from datetime import timedelta
from uuid import uuid4

import pytest

from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxSetup
from payments.gateways.sandbox_setups import confirm_setup, refuse_setup
from tests.payments.gateway_helpers import NOW, authorize, card

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway():
    return SandboxGateway()


def create_setup(gateway, key=None):
    return gateway.create_setup(
        key=key or uuid4(), customer="1", return_url="", expires_at=NOW + timedelta(hours=1)
    )


def test_created_setup_is_the_same_at_each_call(gateway):
    key = uuid4()

    setup = create_setup(gateway, key)

    assert setup == create_setup(gateway, key) == gateway.find_setup(setup.reference)
    assert (setup.state, setup.card) == ("open", None)
    # Neither secret is shown in a traceback.
    assert setup.client_secret not in repr(setup)


def test_confirmed_card_can_be_charged(gateway):
    setup = create_setup(gateway)

    confirm_setup(setup.client_secret, card())

    found = gateway.find_setup(setup.reference)
    assert (found.state, found.client_secret, found.url) == ("succeeded", "", "")
    assert (found.card.last4, found.card.exp_year, found.card.exp_month) == ("4242", 2031, 1)
    assert authorize(gateway, uuid4(), source=found.card.reference).state == "authorized"
    # Neither another card nor a cancellation changes it.
    confirm_setup(setup.client_secret, card("5555555555554444"))
    assert gateway.cancel_setup(setup.reference) == found


def test_refused_setup_takes_another_card(gateway):
    setup = create_setup(gateway)

    assert confirm_setup(setup.client_secret, card("4000000000000002")).state == "failed"
    assert refuse_setup(setup.client_secret).message.startswith("The card was not confirmed")
    assert confirm_setup(setup.client_secret, card()).state == "succeeded"


def test_canceled_setup_takes_no_card(gateway):
    setup = create_setup(gateway)

    assert gateway.cancel_setup(setup.reference).state == "expired"
    assert confirm_setup(setup.client_secret, card()).state == "expired"
    assert SandboxSetup.objects.get().card_reference == ""
    assert gateway.cancel_setup("unknown").state == "expired"
