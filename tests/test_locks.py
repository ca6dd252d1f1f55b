"""The locks are closed: they contain whatever the packages that they list require."""

from importlib import metadata

import pytest

from tests.locks import find_unmet_anywhere


# The packages of the other locks are not in this environment: tests/faults/test_locks.py.
@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_lock_meets_all_requirements_on_each_version_of_python(lock):
    unmet = find_unmet_anywhere(lock, lambda name: metadata.requires(name) or [])

    assert unmet == {}
