"""Searches for centers."""

import pytest

from tests.http import post
from tests.operations.search_locations.helpers import PATH


@pytest.fixture
def search(client, token):
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


@pytest.fixture
def names(search):
    """The names of the centers that a search finds, in order."""

    def names(**fields):
        response = search(**fields)
        assert response.status_code == 200, response.content
        return [center["Name"] for center in response.json()["Centers"]]

    return names
