"""Fixtures of the reservation tests."""

import pytest

from reservations.booking import integrity
from tests.factories_people import StaffFactory
from tests.factories_reservations import NOW
from tests.reservations.moves import with_role


@pytest.fixture
def books_agree(request):
    """Check after a test that the data is consistent, unless it is marked broken_books."""
    yield
    if "broken_books" not in request.keywords:
        assert [str(each) for each in integrity.find_problems(now=NOW)] == []


@pytest.fixture
def clerk():
    return StaffFactory()


@pytest.fixture
def manager():
    """A staff user who may adjust prices at every center."""
    return with_role("Manager")
