"""A stopped clock."""

import pytest
import time_machine

from tests.backoffice.dashboard.helpers import NOW


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield
