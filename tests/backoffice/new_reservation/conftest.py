"""A room and a customer."""

import pytest

from tests.factories_people import UserFactory
from tests.factories_reservations import make_room


@pytest.fixture
def room():
    return make_room()


@pytest.fixture
def user():
    return UserFactory(email="ada@example.com")
