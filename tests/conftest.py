"""Fixtures and settings of all tests."""

import gc
import os
import re
import shutil
from copy import deepcopy
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest
import time_machine
from django.apps import apps
from django.core.management.color import no_style
from django.core.management.commands import flush
from django.db import connection, transaction
from django.db.models.signals import post_migrate
from django.dispatch import receiver
from django.test import override_settings
from hypothesis import settings as hypothesis_settings
from PIL import Image

from tests.faults.size import LONG
from tests.pg_plugin import find_programs

pytest_plugins = ["tests.fixtures"]

# No deadline: a shared machine is sometimes slow.
hypothesis_settings.register_profile("roombook", deadline=None)
hypothesis_settings.load_profile("roombook")


# The permissions of each role, as the migrations have left them.
ROLES: dict[str, list[tuple[str, str]]] = {}


@receiver(post_migrate)
def _restore_roles(sender, **_):
    if sender.name == "django.contrib.auth":  # the last app with permissions of a role
        restore_roles()


def restore_roles(*_, **__):
    """Create the roles again. A migration creates them, and transactional tests delete them."""
    groups, permissions = (apps.get_model("auth", name) for name in ("Group", "Permission"))
    of_groups = groups.permissions.through.objects
    if groups.objects.exists():
        ROLES.update((name, []) for name in groups.objects.values_list("name", flat=True))
        columns = "group__name", "permission__content_type__app_label", "permission__codename"
        for name, *permission in of_groups.values_list(*columns):
            ROLES[name].append(tuple(permission))
        return
    rows = permissions.objects.values_list("content_type__app_label", "codename", "pk")
    ids = {tuple(permission): pk for *permission, pk in rows}
    # In bulk, so that the audit log has no entries of it.
    for group in groups.objects.bulk_create(groups(name=name) for name in ROLES):
        of_groups.bulk_create(
            of_groups.model(group=group, permission_id=ids[each]) for each in ROLES[group.name]
        )


FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _fast_password_hashers(settings):
    """Use a fast hasher. Argon2 is slow on purpose, and most tests only need a signed-in user."""
    settings.PASSWORD_HASHERS = FAST_HASHERS


@pytest.fixture(scope="session")
def media_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("media")


@pytest.fixture(autouse=True)
def _media_root(settings, media_folder):
    """Store uploaded pictures in a temporary folder, which the first upload creates."""
    # Few tests upload anything, and `tmp_path` creates a folder for each.
    settings.MEDIA_ROOT = media_folder / uuid4().hex


def use_tiny_pictures(monkeypatch):
    """Demo data with tiny pictures, because making thumbnails takes most of the time."""
    from reservations.demo import loader  # Models cannot be imported earlier.

    picture = BytesIO()
    Image.new("RGB", (16, 10)).save(picture, "PNG")
    monkeypatch.setattr(loader, "read_picture", lambda name: picture.getvalue())


@pytest.fixture
def tiny_pictures(monkeypatch):
    use_tiny_pictures(monkeypatch)


@pytest.fixture
def world(client, db):
    """One of everything, and a frozen clock (see tests/world.py)."""
    from tests.world import NOW, World  # Models cannot be imported earlier.

    with time_machine.travel(NOW, tick=False):
        yield World(client)


@pytest.fixture(scope="module")
def make_once(django_db_setup, django_db_blocker, tmp_path_factory):
    """Create data once for all tests of a module: `make_once(make)` returns what `make()` returns.

    A transaction is open during the whole module, and each test runs in a savepoint: its changes
    are rolled back after it, and the data after the last test. Do not use it in modules with
    transactional tests.
    """
    from tests.world import NOW

    media = tmp_path_factory.mktemp("media")
    overrides = {"PASSWORD_HASHERS": FAST_HASHERS, "MEDIA_ROOT": media}

    def call(make):
        with override_settings(**overrides), time_machine.travel(NOW, tick=False):
            return make()

    with django_db_blocker.unblock(), transaction.atomic():
        yield call
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def module_world(make_once):
    """One world for all tests of a module."""
    from tests.world import World

    return make_once(lambda: World(client=None))


@pytest.fixture
def world_copy(module_world, client, db):
    """A fresh copy of the module's world. Modules use it as their fixture `world`."""
    from tests.world import NOW

    world = deepcopy(module_world)
    world.client = client
    with time_machine.travel(NOW, tick=False):
        yield world


def restart_ids():
    """Let the ids of empty tables begin with 1, as in a new database."""
    empty = {each._meta.db_table for each in apps.get_models() if not each._base_manager.exists()}
    with connection.cursor() as cursor:
        sequences = connection.introspection.sequence_list()
        sequences = [each for each in sequences if each["table"] in empty]
        for statement in connection.ops.sequence_reset_by_name_sql(no_style(), sequences):
            cursor.execute(statement)


# No test changes them, and to create them again takes longer than most tests.
KEPT_TABLES = {"django_content_type", "auth_permission"}


def delete_rows(style, tables, **_):
    """The statements with which `flush` empties the tables after each transactional test.

    Django would truncate all of them, which takes PostgreSQL half a second.
    """
    names = [connection.ops.quote_name(table) for table in tables if table not in KEPT_TABLES]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'EXISTS (SELECT 1 FROM {name})' for name in names)}")
        has_rows = cursor.fetchone()
    full = [f"DELETE FROM {name}" for name, found in zip(names, has_rows, strict=True) if found]
    if connection.vendor == "postgresql":
        # Neither the order of the tables nor the trigger that keeps receipts matters.
        return ["SET LOCAL session_replication_role = replica", *full]
    with connection.cursor() as cursor:
        # The same for SQLite: without the triggers that keep the ledger and receipts.
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE sql LIKE '% BEFORE DELETE %'")
        guards = cursor.fetchall() if full else []
    return [*(f"DROP TRIGGER {name}" for name, _ in guards), *full, *(sql for _, sql in guards)]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request, tmp_path_factory, django_db_blocker):
    """Copy a database that is migrated once for all processes.

    That of SQLite is a file, as in production: in memory, threads and write locks differ.
    """
    from tests.faults.database import DatabaseStore  # It reads the settings.

    database, store = connection.settings_dict, DatabaseStore(tmp_path_factory.getbasetemp())
    if connection.vendor == "sqlite":
        database["TEST"]["NAME"] = str(tmp_path_factory.getbasetemp() / "test.sqlite3")
        # Test data need not survive a power failure.
        options = database["OPTIONS"]
        options["init_command"] = options["init_command"].replace("FULL", "OFF")
    request.getfixturevalue("django_db_modify_db_settings_parallel_suffix")
    with django_db_blocker.unblock():
        template = store.get_template().settings["NAME"]
    if connection.vendor == "sqlite":
        shutil.copy(template, database["TEST"]["NAME"])
    else:
        database["TEST"]["TEMPLATE"] = template
    # Of the class, because tests with a browser have a connection of their own.
    type(connection.ops).sql_flush = staticmethod(delete_rows)
    flush.emit_post_migrate_signal = restore_roles


@pytest.fixture(scope="session")
def django_db_keepdb():
    """The copy of SQLite's file is the test database; pytest deletes its folder."""
    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def live_server(django_db_setup, live_server):
    """The live server of pytest-django, which ends before the test database is deleted."""
    return live_server


def pytest_collection_finish():
    """Exclude what was imported from garbage collection, which saves a seventh of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 50)


TESTS = Path(__file__).parent
# Files and folders that take minutes. They begin first, so that no process waits for them.
SLOW = re.compile(
    "browser/test_accessibility|faults/test_(upgrade|canary|contention|jobs)|test_wrong_values"
    "|commands/test_working_days|test_card_canary|test_every_operation|payments/machine/test_crashes"
)
SLOW_FOLDERS = ["bench", "browser", "faults", "backoffice"]


def get_order(item):
    """The slow files and folders, then this folder, then the other folders, each file whole.

    SHUFFLE=1, or another seed, sorts the files at random: no file may depend on another.
    """
    path = item.path.relative_to(TESTS)
    if seed := os.environ.get("SHUFFLE"):
        return sha256(f"{seed} {path}".encode()).hexdigest()
    *folders, file = path.parts
    top = folders[0] if folders else ""
    rank = SLOW_FOLDERS.index(top) if top in SLOW_FOLDERS else len(SLOW_FOLDERS)
    return SLOW.match(path.as_posix()) is None, rank, folders, file


# Their tests run on both databases, because what they test can differ, as can what transactional
# tests do. All others run on one in `make test`, on PostgreSQL if they use a database, because it
# is the one of production, and on both in the long form.
CAN_DIFFER = re.compile(
    "^(db|faults|payments/machine)/|availability|books|concurren|constraint|free_times|integrity"
    "|locks|migration|month_end|reports|revenue|search|utilization"
)
# These take minutes, and run on one database in `make test`: what they test needs real parallel
# transactions, or depends little on the database, and SQLite is faster.
ON_POSTGRES = re.compile(
    "commands/test_seed_demo|faults/test_(canary|contention|jobs|metrics|storms)|test_examples"
)
ON_SQLITE = re.compile(
    "^browser/|faults/test_(gateway|upgrade)|commands/test_working_days|test_card_canary"
    "|payments/machine/"
)
TRANSACTIONAL = {"transactional_db", "live_server", "store"}
IS_SHORT = "PYTEST_XDIST_WORKER" in os.environ and not LONG and find_programs() is not None


def uses_transactions(item):
    marker = item.get_closest_marker("django_db")
    is_marked = marker is not None and marker.kwargs.get("transaction", False)
    return is_marked or bool(TRANSACTIONAL & {*item.fixturenames})


def uses_database(item):
    fixtures = {"db", "django_db_setup", *TRANSACTIONAL}
    return item.get_closest_marker("django_db") or fixtures & {*item.fixturenames}


def find_reason_to_skip(item):
    """Why a test does not run on this database, or None."""
    path = item.path.relative_to(TESTS).as_posix()
    needs_postgres = item.get_closest_marker("postgres") is not None
    if connection.vendor == "postgresql":
        # Some start a PostgreSQL of their own, without a fixture of the database.
        if not (needs_postgres or uses_database(item)):
            return f"{item.path.name} on SQLite: no database"
        if IS_SHORT and not needs_postgres and ON_SQLITE.search(path):
            return f"{item.path.name} on SQLite"
        return None
    if needs_postgres:
        return f"{item.name} needs PostgreSQL"
    can_differ = uses_transactions(item) or CAN_DIFFER.search(path) or ON_SQLITE.search(path)
    if IS_SHORT and uses_database(item) and (ON_POSTGRES.search(path) or not can_differ):
        return f"{item.path.name} on PostgreSQL"
    return None


def pytest_collection_modifyitems(items):
    """Order the files, and run each test on the databases that it depends on (`-rs` lists them)."""
    items.sort(key=get_order)
    for item in items:
        if reason := find_reason_to_skip(item):
            item.add_marker(pytest.mark.skip(reason=reason))
