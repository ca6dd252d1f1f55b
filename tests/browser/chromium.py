"""The browser of tests and screenshots: the Chromium of this machine, without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

# The one that also shows PDF files.
WHOLE_PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
PROGRAM = shutil.which("chromium-headless-shell") or WHOLE_PROGRAM

DESKTOP = {"width": 1440, "height": 900}
LAPTOP = {"width": 1024, "height": 768}
TABLET = {"width": 720, "height": 1080}
PHONE = {"width": 390, "height": 844}

# Milliseconds that a step may take on a machine which is busy with other tests.
TIMEOUT = 60_000

FLAGS = [
    "--no-sandbox",  # tests may run as root
    "--disable-dev-shm-usage",
    # Requests of the browser itself.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def started(program: str | None = PROGRAM) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, **options: Any) -> Page:
    """A page in a context of its own. It, and windows that it opens, wait as long as others do."""
    page = browser.new_page(**{"viewport": DESKTOP, **options})
    page.context.set_default_timeout(TIMEOUT)
    return page


class Watch:
    """Records errors in the console, failed requests and requests to other hosts."""

    def __init__(self, page: Page, host: str) -> None:
        self.complaints: list[str] = []
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self._on_request(request.url, host))
        page.on("response", lambda answer: self._answered(answer.status, answer.url))

    def _said(self, kind: str, text: str) -> None:
        # `_answered` reports failed requests with their URL.
        if kind in {"error", "warning"} and not text.startswith("Failed to load resource"):
            self.complaints.append(f"{kind}: {text}")

    def _answered(self, status: int, address: str) -> None:
        if status >= HTTPStatus.BAD_REQUEST:
            self.complaints.append(f"{status}: {address}")

    def _on_request(self, address: str, host: str) -> None:
        # The browser shows PDF by an extension of its own.
        own = ("data:", "blob:", "chrome-extension:", "chrome:")
        if not address.startswith((host, *own)):
            self.complaints.append(f"requested another host: {address}")


def sign_in(page: Page, host: str, email: str, password: str) -> None:
    page.goto(f"{host}/admin/login/?next=/admin/")
    page.fill("#id_username", email)
    page.fill("#id_password", password)
    page.click("#login-form button[type=submit]")
    page.wait_for_url(f"{host}/admin/")
