"""Users with roles, for tests of the back office."""

from collections.abc import Callable, Iterator

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.test import Client

from accounts.models import CenterRole, User
from centers.models import Center
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import NOW


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Stops the clock at the NOW of the factories; a test may move it."""
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def office(client: Client) -> Client:
    """A client that is signed in as an administrator."""
    client.force_login(AdministratorFactory(first_name="Root", last_name="Boss"))
    return client


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
