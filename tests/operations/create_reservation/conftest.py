"""Requests that create a draft."""

import pytest

from tests.factories_people import UserFactory
from tests.http import post
from tests.operations.create_reservation.helpers import NINE_TO_TWELVE, PATH


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com", company_name="Engines Ltd")


@pytest.fixture
def create(client, token, room):
    def create(**fields):
        body = {"Token": token, "MeetingRoomId": room.pk, **NINE_TO_TWELVE, **fields}
        return post(client, PATH, body)

    return create
