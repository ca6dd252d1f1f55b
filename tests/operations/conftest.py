"""The caller of an operation, and its requests. A module may replace them."""

import pytest

from tests.factories_people import UserFactory
from tests.http import post


@pytest.fixture
def ada(db):
    return UserFactory(
        email="ada@example.com", company_name="Engines Ltd", phone_number="+1 303 555 0100"
    )


@pytest.fixture
def call(client, token):
    """Call an operation by its path with the caller's Token, and return the response."""
    return lambda path, **fields: post(client, path, {"Token": token, **fields})


@pytest.fixture
def get(call):
    """Call an operation that succeeds, and return the fields of its response."""

    def get(path, **fields):
        response = call(path, **fields)
        assert response.status_code == 200, response.content
        return response.json()

    return get


@pytest.fixture
def read(get):
    """Return a reservation as Get reservation shows it."""
    return lambda row: get("/api/account/reservation", Id=row.pk)["Reservation"]
