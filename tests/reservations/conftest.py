import pytest

from reservations.booking import expiry, integrity
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import HOUR, START


@pytest.fixture
def ends_consistent(request):
    """The data are consistent three days after the meeting, unless marked inconsistent_data."""
    yield
    if "inconsistent_data" in request.keywords:
        return
    later = START + 72 * HOUR
    [*expiry.close_overdue(now=later)]
    assert [str(each) for each in integrity.find_problems(now=later)] == []


@pytest.fixture
def root(db):
    """An administrator."""
    return AdministratorFactory()
