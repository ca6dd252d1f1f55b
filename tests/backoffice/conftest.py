"""Users with roles, for tests of the back office."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group

from accounts.models import User
from tests.factories_people import make_staff_with_role
from tests.world import World


@pytest.fixture
def groups(db: None) -> dict[str, Group]:
    """The roles that the migration creates, by name."""
    return {group.name: group for group in Group.objects.all()}


@pytest.fixture
def staff(db: None) -> Callable[..., User]:
    """Create a staff user: `staff("Desk", center)` at one center, `staff("Desk")` at all."""
    return make_staff_with_role


@pytest.fixture
def world(world_copy: World) -> World:
    return world_copy
