"""Collected first: its database is copied for each mutant."""

import pytest


@pytest.mark.django_db
def test_database_is_migrated():
    pass
