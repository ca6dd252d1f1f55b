"""Pictures of every page of the back office with demo data: `make screenshots`.

They go to screenshots/, by size and theme; those that README shows are copied to docs/images by
hand, once looked at.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from playwright.sync_api import Browser, Page

from tests.browser import chromium

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "screenshots"
EMAIL, PASSWORD = "staff@roombook.example", "quiet-harbour-42"
START_SECONDS = 60

# Each page by the address under /admin/; an address that ends in "*" is followed to the page that
# the list of that name shows first.
PAGES = {
    "today": "",
    "timeline": "reservations/reservation/timeline/",
    "reports": "reservations/reservation/reports/",
    "reservations": "reservations/reservation/",
    "reservation": "reservations/reservation/*",
    "new-reservation": "reservations/reservation/add/",
    "centers": "centers/center/",
    "center": "centers/center/*",
    "rooms": "centers/meetingroom/",
    "room": "centers/meetingroom/*",
    "rates": "centers/rate/",
    "rate": "centers/rate/*",
    "services": "centers/service/",
    "closures": "centers/closure/",
    "customers": "accounts/user/",
    "customer": "accounts/user/*",
    "payments": "payments/payment/",
    "payment": "payments/payment/*",
    "promo-codes": "reservations/promocode/",
    "promo-code": "reservations/promocode/*",
    "allowances": "reservations/allowance/",
    "allowance": "reservations/allowance/*",
    "partners": "reservations/partner/",
    "mails": "accounts/outboxmessage/",
    "roles": "accounts/centerrole/",
    "report-revenue": "reservations/reservation/reports/revenue/",
    "report-utilization": "reservations/reservation/reports/utilization/",
    "report-cancellations": "reservations/reservation/reports/cancellations/",
    "report-discounts": "reservations/reservation/reports/discounts/",
}
LOOKS = {
    "desktop": (chromium.DESKTOP, "light"),
    "desktop-dark": (chromium.DESKTOP, "dark"),
    "tablet": (chromium.TABLET, "light"),
}


class Server(NamedTuple):
    host: str
    process: subprocess.Popen


def main() -> int:
    if not chromium.PROGRAM:
        print("There is no Chromium on this machine (Debian: apt-get install chromium).")
        return 1
    with tempfile.TemporaryDirectory(prefix="roombook-screenshots-") as folder:
        server = start(Path(folder))
        try:
            with chromium.started() as browser:
                complaints = [
                    complaint for look in LOOKS for complaint in take(browser, server.host, look)
                ]
        finally:
            server.process.terminate()
            server.process.wait()
    print(*complaints, sep="\n")
    return 1 if complaints else 0


def start(folder: Path) -> Server:
    """The service with demo data in a database of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "ENV_FILE": os.devnull,
        "DEBUG": "true",
        "SECRET_KEY": "screenshots",
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "MEDIA_ROOT": str(folder / "media"),
        "LOG_LEVEL": "WARNING",
    }
    manage = [sys.executable, "manage.py"]
    for command in (["migrate", "--verbosity=0"], ["seed_demo", "--verbosity=0"]):
        subprocess.run([*manage, *command], cwd=ROOT, env=environment, check=True)
    process = subprocess.Popen(
        [*manage, "runserver", f"127.0.0.1:{port}", "--noreload"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    host = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            urlopen(f"{host}/healthz", timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            break
    return Server(host, process)


def take(browser: Browser, host: str, look: str) -> list[str]:
    """A picture of each page; answers with what the browser complained about."""
    size, theme = LOOKS[look]
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = context.new_page()
    watch = chromium.Watch(page, host)
    folder = FOLDER / look
    folder.mkdir(parents=True, exist_ok=True)
    page.goto(f"{host}/admin/login/")
    page.screenshot(path=folder / "sign-in.png")
    chromium.sign_in(page, host, EMAIL, PASSWORD)
    for name, address in PAGES.items():
        open_page(page, f"{host}/admin/", address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}.png")
        print(f"{look}/{name}.png")
    context.close()
    return [f"{look}: {complaint}" for complaint in watch.complaints]


def open_page(page: Page, admin: str, address: str) -> None:
    if not address.endswith("*"):
        page.goto(admin + address)
        return
    page.goto(admin + address.removesuffix("*"))
    pages = re.compile(rf"/{re.escape(address.removesuffix('*'))}\d+/change/")
    page.goto(admin.removesuffix("/admin/") + first(page, pages))


def first(page: Page, pages: re.Pattern[str]) -> str:
    links = page.locator("#result_list a").evaluate_all(
        "links => links.map(link => link.getAttribute('href'))"
    )
    found = next((link for link in links if pages.search(link)), None)
    assert found, f"no link to {pages.pattern} on {page.url}"
    return found


if __name__ == "__main__":
    sys.exit(main())
