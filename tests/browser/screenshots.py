"""Takes screenshots of pages with demo data: `make screenshots`.

They are saved in screenshots/, by size and theme. Those in README and in the docs are copied to
docs/images manually, after a look at them. Whenever they are taken, it is the morning of a working
day in the demo's centers in Denver: at night, nobody meets there.
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


class Fill(NamedTuple):
    """A selector of a field, and what to enter there."""

    selector: str
    text: str


# Each page by its URL under /admin/ and selectors of links to follow from there.
RESERVATIONS = "reservations/reservation/"
# Those of today may have begun, and cannot be cancelled any more.
CONFIRMED = f"{RESERVATIONS}?status__exact=Confirmed&when=tomorrow"
DRAFTS = f"{RESERVATIONS}?status__exact=New&q=demo@roombook.example"
ROW = "#result_list a[href*='/change/']"
PAGES: dict[str, tuple[str | Fill, ...]] = {
    "dashboard": ("",),
    # The first center is the one with all roles.
    "today": (f"{RESERVATIONS}today/?center=1",),
    "timeline": (f"{RESERVATIONS}timeline/",),
    "center-week": (f"{RESERVATIONS}timeline/center/",),
    "week": (f"{RESERVATIONS}timeline/", ".timeline-row a"),
    "reservations": (RESERVATIONS,),
    "reservation": (CONFIRMED, ROW),
    "take-payment": (
        *(DRAFTS, ROW, "a[href$='/step/take-payment/']", Fill("[name=reference]", "Slip 0042")),
        Click("button:has-text('Preview')"),
    ),
    "receipt": (
        CONFIRMED,
        ROW,
        "a[href$='/receipts/']",
        # The first look issues it, the others open it again.
        Click("button:has-text('Issue receipt'), .reservation a[href$='.pdf']"),
    ),
    "new-reservation": (f"{RESERVATIONS}add/?center=1&room=1",),
    "revenue": (f"{RESERVATIONS}reports/revenue/",),
    "month-end": (f"{RESERVATIONS}reports/month-end/",),
    "utilization": (f"{RESERVATIONS}reports/utilization/",),
    "customers": ("accounts/user/",),
    "center": ("centers/center/", ROW),
}
LOOKS = {
    "desktop": (chromium.DESKTOP, "light"),
    "laptop-dark": (chromium.LAPTOP, "dark"),
    "phone": (chromium.PHONE, "light"),
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
                complaints = [
                    complaint for look in LOOKS for complaint in take(browser, server.host, look)
                ]
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


def take(browser: Browser, host: str, look: str) -> list[str]:
    """Take a screenshot of each page, and return the errors that the browser reported."""
    size, theme = LOOKS[look]
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = context.new_page()
    watch = chromium.Watch(page, host)
    folder = FOLDER / look
    folder.mkdir(parents=True, exist_ok=True)
    page.goto(f"{host}/docs")
    page.locator(OPERATION).click()
    page.locator(OPERATION).scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    save_screenshot(page, folder / "api.png")
    page.goto(f"{host}/admin/login/")
    save_screenshot(page, folder / "sign-in.png")
    chromium.sign_in(page, host, EMAIL, PASSWORD)
    for name, (address, *links) in PAGES.items():
        page.goto(f"{host}/admin/{address}")
        follow(page, *links)
        page.wait_for_load_state("networkidle")
        save_screenshot(page, folder / f"{name}.png")
        print(f"{look}/{name}.png")
    context.close()
    return [f"{look}: {complaint}" for complaint in watch.complaints]


def save_screenshot(page: Page, path: Path) -> None:
    """Save what the window shows, with few colors, because a repository keeps each version."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def follow(page: Page, *links: str | Fill) -> None:
    for link in links:
        if isinstance(link, Fill):
            page.fill(link.selector, link.text)
            continue
        found = page.locator(link).first
        target = found.get_attribute("href")
        if isinstance(link, Click) or target is None or target.startswith("#"):
            found.click()
            # What a script fetches then, such as a panel, is not on its way at once.
            page.wait_for_timeout(1_000)
        else:
            page.goto(urljoin(page.url, target))


if __name__ == "__main__":
    sys.exit(main())
