"""Takes the pictures of README and of the docs from demo data: `make screenshots`.

They are saved in screenshots/ and copied to docs/images manually, after a look at them. Whenever
they are taken, it is the morning of a working day in the demo's centers in Denver: at night, nobody
meets there.
"""

import datetime as dt
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin
from zoneinfo import ZoneInfo

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.faults.processes import find_free_port, is_listening, wait_for

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "screenshots"
EMAIL, PASSWORD = "staff@roombook.example", "quiet-harbour-42"
SATURDAY = 5
# manage.py with a clock that runs on from TEST_DAY.
MANAGE = [
    *(sys.executable, "-c"),
    "import runpy, tests.faults.other_day; runpy.run_path('manage.py', run_name='__main__')",
]

# What to open on the page for client developers.
OPERATION = "#operations-Reservations-createReservation .opblock-summary-control"


class Click(str):
    """A selector of what to click. The targets of other links are opened."""


# Each page by its URL under /admin/ and selectors of links to follow from there.
RESERVATIONS = "reservations/reservation/"
# Those of today may have begun, and cannot be cancelled any more.
CONFIRMED = f"{RESERVATIONS}?status__exact=Confirmed&when=tomorrow"
DRAFTS = f"{RESERVATIONS}?status__exact=New&q=demo@roombook.example"
ROW = "#result_list a[href*='/change/']"
PAGES: dict[str, tuple[str, ...]] = {
    # The first center is the one with all roles.
    "today": (f"{RESERVATIONS}today/?center=1",),
    "timeline": (f"{RESERVATIONS}timeline/",),
    "take-payment": (DRAFTS, ROW, "a[href$='/step/take-payment/']"),
    "receipt": (CONFIRMED, ROW, "a[href$='/receipts/']", Click("button:has-text('Issue receipt')")),
    "new-reservation": (f"{RESERVATIONS}add/?center=1&room=1",),
    "month-end": (f"{RESERVATIONS}reports/month-end/",),
}


class Server(NamedTuple):
    host: str
    process: subprocess.Popen


def main() -> int:
    if not chromium.WHOLE_PROGRAM:
        print("There is no Chromium on this machine (Debian: apt-get install chromium).")
        return 1
    with tempfile.TemporaryDirectory(prefix="roombook-screenshots-") as folder:
        server = start(Path(folder))
        try:
            with chromium.started(program=chromium.WHOLE_PROGRAM) as browser:
                complaints = take(browser, server.host)
        finally:
            server.process.terminate()
            server.process.wait()
    print(*complaints, sep="\n")
    return 1 if complaints else 0


def choose_morning() -> dt.datetime:
    """Return 10:20 in Denver on the last day that is not at a weekend."""
    morning = dt.datetime.now(ZoneInfo("America/Denver")).replace(hour=10, minute=20)
    return morning - dt.timedelta(days=max(0, morning.weekday() - SATURDAY + 1))


def start(folder: Path) -> Server:
    """Start the service with demo data in a temporary database."""
    port = find_free_port()
    environment = os.environ | {
        "ENV_FILE": os.devnull,
        "DEBUG": "true",
        "SECRET_KEY": "screenshots",
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "MEDIA_ROOT": str(folder / "media"),
        "LOG_LEVEL": "WARNING",
        "TEST_DAY": choose_morning().isoformat(),
    }
    for command in (["migrate", "--verbosity=0"], ["seed_demo", "--verbosity=0"]):
        subprocess.run([*MANAGE, *command], cwd=ROOT, env=environment, check=True)
    # The user of the screenshots sees every page.
    statement = f"User.objects.filter(email={EMAIL!r}).update(is_superuser=True)"
    shell = [*MANAGE, "shell", "--verbosity=0", "--command", statement]
    subprocess.run(shell, cwd=ROOT, env=environment, check=True)
    process = subprocess.Popen(
        [*MANAGE, "runserver", f"127.0.0.1:{port}", "--noreload"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: is_listening(port), "the service")
    return Server(f"http://127.0.0.1:{port}", process)


def take(browser: Browser, host: str) -> list[str]:
    """Take each picture, and return the errors that the browser reported."""
    page = browser.new_page(viewport=chromium.DESKTOP, color_scheme="light")
    watch = chromium.Watch(page, host)
    FOLDER.mkdir(exist_ok=True)
    page.goto(f"{host}/docs")
    page.locator(OPERATION).click()
    page.locator(OPERATION).scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    save_screenshot(page, FOLDER / "api.png")
    chromium.sign_in(page, host, EMAIL, PASSWORD)
    for name, (address, *links) in PAGES.items():
        page.goto(f"{host}/admin/{address}")
        follow(page, *links)
        # The form to take a payment shows what it will do.
        if name == "take-payment":
            page.fill("[name=reference]", "Slip 0042")
            page.click("button:has-text('Preview')")
        # What a script fetches is not on its way at once.
        page.wait_for_timeout(1_000)
        page.wait_for_load_state("networkidle")
        save_screenshot(page, FOLDER / f"{name}.png")
    return watch.complaints


def save_screenshot(page: Page, path: Path) -> None:
    """Save what the window shows, with few colors, because a repository keeps each version."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def follow(page: Page, *links: str) -> None:
    for link in links:
        found = page.locator(link).first
        target = found.get_attribute("href")
        if isinstance(link, Click) or target is None:
            found.click()
        else:
            page.goto(urljoin(page.url, target))


if __name__ == "__main__":
    sys.exit(main())
