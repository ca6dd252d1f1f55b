"""Fixtures for tests with a browser and demo data."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import override_settings
from playwright.sync_api import Browser, BrowserContext, Page, expect

from reservations.demo.accounts import PASSWORD
from tests.browser import chromium
from tests.browser.ways import DESKTOP, Way
from tests.conftest import FAST_HASHERS, use_tiny_pictures
from tests.faults.database import Database, DatabaseStore


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if chromium.PROGRAM:
        return
    for item in items:
        if "tests/browser/" in item.nodeid and "browser" in item.fixturenames:
            item.add_marker(pytest.mark.skip(reason=f"{item.name} needs Chromium"))


@pytest.fixture(scope="session")
def databases(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[DatabaseStore]:
    with django_db_blocker.unblock():
        store = DatabaseStore(tmp_path_factory.mktemp("databases"))
    yield store
    with django_db_blocker.unblock():
        store.remove()


@pytest.fixture(scope="session")
def loaded_demo(databases, django_db_blocker, tmp_path_factory) -> tuple[Database, Path]:
    """A database with the demo data, and the folder of its pictures, to be copied for each test.

    Loading them takes seconds.
    """
    folder = tmp_path_factory.mktemp("pictures")
    with (
        django_db_blocker.unblock(),
        pytest.MonkeyPatch.context() as patch,
        override_settings(MEDIA_ROOT=folder, PASSWORD_HASHERS=FAST_HASHERS),
    ):
        use_tiny_pictures(patch)
        database = databases.new()
        with database.open():
            call_command("seed_demo", force=True, small=True, verbosity=0)
    return database, folder


@pytest.fixture(scope="package")
def browser(loaded_demo, live_server) -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, so Django would refuse to use the database, and
    # has a connection for it that the tests of other folders would not close.
    with pytest.MonkeyPatch.context() as patch, chromium.started() as browser:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=chromium.TIMEOUT)
        yield browser
        connections.close_all()


@pytest.fixture
def demo(transactional_db: None, databases, loaded_demo, settings, media_folder) -> Iterator[None]:
    """The demo data, in a database of the test's own."""
    database, pictures = loaded_demo
    settings.MEDIA_ROOT = shutil.copytree(pictures, media_folder / uuid4().hex)
    copy = databases.copy(database)
    with copy.open_in_all_threads():
        yield
    databases.remove_copy(copy)


@pytest.fixture(scope="package")
def free_contexts(browser: Browser) -> dict[tuple[object, ...], list[BrowserContext]]:
    """Contexts that no test uses, by their options. They keep the static files that they loaded."""
    return defaultdict(list)


@pytest.fixture
def desk(demo: None, browser: Browser, free_contexts, live_server) -> Iterator[Callable[..., Page]]:
    """Sign a demo staff user in: `desk("desk")`, "manager", "viewer" or "staff"."""
    opened = []

    def open_as(name: str, way: Way = DESKTOP) -> Page:
        free = free_contexts[way.size, way.theme]
        if not free:
            context = browser.new_context(viewport=way.viewport, color_scheme=way.theme)
            context.set_default_timeout(chromium.TIMEOUT)
            free.append(context)
        context = free.pop()
        page = context.new_page()
        opened.append((context, free, chromium.Watch(page, live_server.url)))
        chromium.sign_in(page, live_server.url, f"{name}@roombook.example", PASSWORD)
        return page

    yield open_as
    for context, free, watch in opened:
        for page in context.pages:
            # Not by a script: the page may be about to show another one.
            stored = {"origin": live_server.url, "storageTypes": "local_storage"}
            context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
            page.close()
        context.clear_cookies()
        free.append(context)
        assert watch.complaints == []
