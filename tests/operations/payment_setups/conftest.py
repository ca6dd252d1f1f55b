"""An account that saves a card without its number, with the sandbox as the gateway."""

import pytest
import time_machine
from django.test import Client

from payments.gateways.sandbox_setups import confirm_setup
from tests.factories_people import UserFactory, issue_token
from tests.http import post
from tests.operations.payment_setups.helpers import COMPLETE, CREATE, NOW
from tests.payments.gateway_helpers import card


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com", first_name="Ada", last_name="Lovelace")


@pytest.fixture
def token(ada):
    return issue_token(ada)


@pytest.fixture
def create(client, token):
    """Create a setup and return its fields."""

    def create(**fields):
        response = post(client, CREATE, {"Token": token, **fields})
        assert response.status_code == 200, response.content
        return response.json()["PaymentSetup"]

    return create


@pytest.fixture
def complete(token):
    def complete(setup, *, as_token=token):
        body = {"Token": as_token, "PaymentSetupId": setup["Id"]}
        # Its own client, so that threads can share the fixture.
        return post(Client(), COMPLETE, body)

    return complete


@pytest.fixture
def enter():
    """Enter a test card for a setup, as its customer does at the gateway."""

    def enter(setup, number="4242424242424242"):
        return confirm_setup(setup["ClientSecret"], card(number))

    return enter
