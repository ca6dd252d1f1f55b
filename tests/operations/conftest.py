"""The caller of an operation and its Token. A module replaces them if it needs another account."""

import pytest

from tests.factories_people import UserFactory, issue_token


@pytest.fixture
def ada(db):
    return UserFactory()


@pytest.fixture
def token(ada):
    return issue_token(ada)
