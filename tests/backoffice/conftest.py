"""Users with roles, and a clock, for tests of the back office."""

import datetime as dt
from collections.abc import Callable

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.test import Client

from accounts.models import User
from roombook.imports import files, workbooks
from tests.factories_people import AdministratorFactory, make_staff_with_role
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


@pytest.fixture
def wait_until(office: Client, clock: time_machine.Traveller) -> Callable[[dt.datetime], None]:
    """Move the clock, and sign in again: a session ends with the working day."""

    def move(at: dt.datetime) -> None:
        clock.move_to(at)
        office.force_login(AdministratorFactory())

    return move


@pytest.fixture
def workbooks_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read workbooks in this process: to start one of their own takes a second."""
    monkeypatch.setattr(files, "_read_workbook", workbooks.read)
