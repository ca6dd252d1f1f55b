"""A room and a customer."""

import pytest

from tests.factories_people import UserFactory


@pytest.fixture
def user():
    return UserFactory(email="ada@example.com")
