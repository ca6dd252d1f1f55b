"""Fixtures for tests with a browser and demo data."""

from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from django.db import connection, connections
from playwright.sync_api import Browser, Page, expect

from reservations.demo.accounts import PASSWORD
from tests.browser import chromium
from tests.pg_plugin import find_programs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests if there is no browser, or if they also run on PostgreSQL."""
    if not chromium.PROGRAM:
        reason = "needs Chromium"
    elif connection.vendor == "sqlite" and find_programs() is not None:
        # They take minutes, and pages look and work the same on both databases.
        reason = "runs on PostgreSQL"
    else:
        return
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason=f"{item.name} {reason}"))


@pytest.fixture(scope="package")
def browser(live_server) -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, so Django would refuse to use the database, and
    # has a connection for it that the tests of other folders would not close.
    with pytest.MonkeyPatch.context() as patch, chromium.started() as browser:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=chromium.TIMEOUT)
        yield browser
        connections.close_all()


@pytest.fixture
def demo(transactional_db: None, tiny_pictures: None) -> None:
    call_command("seed_demo", force=True, verbosity=0)


@pytest.fixture
def desk(demo: None, browser: Browser, live_server) -> Iterator[Callable[..., Page]]:
    """Sign a demo staff user in: `desk("desk")`, "manager", "viewer" or "staff"."""
    opened = []

    def open_as(name: str, *, size: dict = chromium.DESKTOP) -> Page:
        context = browser.new_context(viewport=size)
        page = context.new_page()
        page.set_default_timeout(chromium.TIMEOUT)
        opened.append((context, chromium.Watch(page, live_server.url)))
        chromium.sign_in(page, live_server.url, f"{name}@roombook.example", PASSWORD)
        return page

    yield open_as
    for context, watch in opened:
        context.close()
        assert watch.complaints == []
