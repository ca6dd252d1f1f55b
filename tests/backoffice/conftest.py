"""Users with roles, for tests of the back office."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group

from accounts.models import CenterRole, User
from centers.models import Center
from tests.world import World


@pytest.fixture
def groups(db: None) -> dict[str, Group]:
    """The roles that the migration creates, by name."""
    return {group.name: group for group in Group.objects.all()}


@pytest.fixture
def staff(groups: dict[str, Group]) -> Callable[..., User]:
    """Create a staff user: `staff("Desk", center)` at one center, `staff("Desk")` at all."""

    def make(role: str, *centers: Center, email: str = "") -> User:
        number = User.objects.count()
        user = User.objects.create_user(
            email or f"{role.lower()}{number}@example.com",
            first_name=role,
            last_name=f"Number {number}",
            is_staff=True,
        )
        if not centers:
            user.groups.add(groups[role])
        for center in centers:
            CenterRole.objects.create(user=user, center=center, group=groups[role])
        return User.objects.get(pk=user.pk)

    return make


@pytest.fixture
def world(world_copy: World) -> World:
    return world_copy
