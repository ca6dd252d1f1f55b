"""What tests of reservations share."""

import pytest

from reservations.booking import integrity
from tests.factories_people import StaffFactory
from tests.factories_reservations import NOW
from tests.reservations.moves import with_role


@pytest.fixture
def books_agree(request):
    """Whatever a test did, all books are right after it, unless it breaks them on purpose."""
    yield
    if "broken_books" not in request.keywords:
        assert [str(each) for each in integrity.find_problems(now=NOW)] == []


@pytest.fixture
def clerk():
    return StaffFactory()


@pytest.fixture
def manager():
    """Who may adjust prices everywhere."""
    return with_role("Manager")
