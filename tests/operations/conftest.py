"""The caller of an operation, its Token, and a room. A module may replace them."""

import pytest

from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import make_room


@pytest.fixture
def ada(db):
    return UserFactory()


@pytest.fixture
def token(ada):
    return issue_token(ada)


@pytest.fixture
def room(db):
    return make_room()
