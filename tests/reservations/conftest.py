import pytest

from reservations.booking import expiry, integrity
from tests.factories_reservations import HOUR, START


@pytest.fixture
def ends_consistent():
    """The data are consistent three days after the meeting."""
    yield
    later = START + 72 * HOUR
    [*expiry.close_overdue(now=later)]
    assert [str(each) for each in integrity.find_problems(now=later)] == []
