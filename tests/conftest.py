"""What all tests share."""

from copy import deepcopy
from importlib import import_module
from io import BytesIO

import pytest
import time_machine
from django.apps import apps
from django.db import connection, transaction
from django.db.models.signals import post_migrate
from django.dispatch import receiver
from django.test import override_settings
from hypothesis import settings as hypothesis_settings
from PIL import Image

# Two shared cores are slow at times; a deadline would fail tests for that.
hypothesis_settings.register_profile("roombook", deadline=None)
hypothesis_settings.load_profile("roombook")


@receiver(post_migrate)
def _roles_again(sender, **_):
    """Tests that write for real empty the database after them; the roles came by a migration."""
    if sender.name == "reservations" and not apps.get_model("auth", "Group").objects.exists():
        import_module("reservations.migrations.0003_roles").make_groups(apps, None)


QUICK_PASSWORDS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    """Argon2 is slow on purpose; most tests only need somebody who is signed in."""
    settings.PASSWORD_HASHERS = QUICK_PASSWORDS


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    """Pictures of tests go where nobody keeps them."""
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def tiny_pictures(monkeypatch):
    """For demo data at whose pictures nobody looks: drawing takes most of its time."""
    from reservations.demo import pictures

    drawn = BytesIO()
    Image.new("RGB", (16, 10)).save(drawn, "PNG")
    monkeypatch.setattr(pictures, "outside", lambda name: drawn.getvalue())
    monkeypatch.setattr(pictures, "inside", lambda name, seats: drawn.getvalue())


@pytest.fixture
def world(client, db):
    """One of everything, and a clock that stands still (tests/world.py)."""
    from tests.world import NOW, World  # Models, which are ready only by now.

    with time_machine.travel(NOW, tick=False):
        yield World(client)


@pytest.fixture(scope="module")
def make_once(django_db_setup, django_db_blocker, tmp_path_factory):
    """Make data once for all tests of a module: `make_once(make)` is what `make()` made.

    A transaction is open around the module, and each test's own is a savepoint within it: what a
    test changes is undone after it, the data after the last. Not beside tests that write for real.
    """
    from tests.world import NOW

    media = tmp_path_factory.mktemp("media")
    quick = {"PASSWORD_HASHERS": QUICK_PASSWORDS, "MEDIA_ROOT": media}

    def made(make):
        with override_settings(**quick), time_machine.travel(NOW, tick=False):
            return make()

    with django_db_blocker.unblock(), transaction.atomic():
        yield made
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def module_world(make_once):
    """The world of a module with many tests, made once."""
    from tests.world import World

    return make_once(lambda: World(client=None))


@pytest.fixture
def world_copy(module_world, client, db):
    """The world that the module's tests share, as it was made: for `world` of that module."""
    from tests.world import NOW

    world = deepcopy(module_world)
    world.client = client
    with time_machine.travel(NOW, tick=False):
        yield world


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request, tmp_path_factory):
    """SQLite in a file, as in production: in memory, threads and write locks are others."""
    if connection.vendor == "sqlite":
        database = connection.settings_dict
        database["TEST"]["NAME"] = str(tmp_path_factory.getbasetemp() / "test.sqlite3")
        # Power may fail during a test.
        options = database["OPTIONS"]
        options["init_command"] = options["init_command"].replace("FULL", "OFF")
    request.getfixturevalue("django_db_modify_db_settings_parallel_suffix")


def pytest_collection_modifyitems(items):
    """Tests of what only PostgreSQL does are skipped by name on SQLite (`-rs` lists them)."""
    if connection.vendor == "postgresql":
        return
    for item in items:
        if item.get_closest_marker("postgres"):
            item.add_marker(pytest.mark.skip(reason=f"{item.name} needs PostgreSQL"))
