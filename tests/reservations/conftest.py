"""Fixtures of the reservation tests."""

import pytest

from reservations.booking import integrity
from tests.factories_people import StaffFactory
from tests.factories_reservations import NOW, make_room
from tests.reservations.rescheduling_helpers import make_staff_with_role


@pytest.fixture
def data_is_consistent(request):
    """Check after a test that the data is consistent, unless it is marked inconsistent_data."""
    yield
    if "inconsistent_data" not in request.keywords:
        assert [str(each) for each in integrity.find_problems(now=NOW)] == []


@pytest.fixture
def clerk():
    return StaffFactory()


@pytest.fixture
def manager():
    """A staff user who may adjust prices at every center."""
    return make_staff_with_role("Manager")


@pytest.fixture
def room():
    return make_room()
