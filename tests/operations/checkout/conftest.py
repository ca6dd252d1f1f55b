"""A draft and its checkout."""

import pytest

from tests.factories_reservations import make_draft


@pytest.fixture
def drafted(ada):
    """A draft of three hours for 75 dollars."""
    return make_draft(ada)


@pytest.fixture
def check_out(call, drafted):
    return lambda **fields: call(
        "/api/reservations/checkout", **{"ReservationId": drafted.pk, **fields}
    )
