"""A draft and its checkout."""

import pytest

from tests.factories_reservations import make_draft
from tests.http import post
from tests.operations.checkout.helpers import PATH


@pytest.fixture
def drafted(ada):
    """A draft of three hours for 75 dollars."""
    return make_draft(ada)


@pytest.fixture
def check_out(client, token, drafted):
    def check_out(**fields):
        return post(client, PATH, {"Token": token, "ReservationId": drafted.pk, **fields})

    return check_out
