"""Measures the processor time of every page of the back office: `python -m tests.bench.pages`.

The data are the demo data and those of a company with 300 centers and 5,000 reservations, in a
temporary SQLite database: the figures contain the work of the database. Each page is requested some
times, and the fastest counts, because a busy machine makes the others slower.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from http import HTTPStatus

import django

MAX_MILLISECONDS = 300
TIMES = 3
LISTS = (
    "reservations/reservation/",
    "reservations/reservation/?p=2",
    "reservations/reservation/?q=garcia",
    "reservations/reservation/?q=nobody+at+all",
    "reservations/reservation/?status__exact=Confirmed",
    "reservations/reservation/?when=week",
    "centers/center/",
    "centers/center/?q=denver",
    "centers/meetingroom/",
    "centers/rate/",
    "centers/service/",
    "centers/closure/",
    "accounts/user/",
    "accounts/user/?q=garcia",
    "payments/payment/",
    "payments/payment/?q=garcia",
    "payments/refund/",
    "payments/refund/?q=a",
    "reservations/promocode/",
    "reservations/allowance/",
)


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.bench.pages", description=__doc__)
    parser.add_argument("--centers", type=int, default=300, metavar="N")
    parser.add_argument("--reservations", type=int, default=5000, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roombook-pages-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "ENV_FILE": os.devnull,
            "DEBUG": "true",
            "SECRET_KEY": "pages",
            "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
            "MEDIA_ROOT": f"{folder}/media",
            "LOG_LEVEL": "WARNING",
        }
        size = [f"--centers={options.centers}", f"--reservations={options.reservations}"]
        for command in (
            ["manage.py", "migrate", "--verbosity=0"],
            ["manage.py", "seed_demo", "--small", "--verbosity=0"],
            ["-m", "tests.bench.generate", *size],
        ):
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        django.setup()
        pages = sorted(measure_pages(), reverse=True)
    slow = sum(milliseconds > MAX_MILLISECONDS for milliseconds, _ in pages)
    lines = [f"{milliseconds:6.0f} ms  {url}" for milliseconds, url in pages]
    print(*lines, f"{len(pages)} pages, {slow} above {MAX_MILLISECONDS} ms", sep="\n")  # noqa: T201
    return 1 if slow else 0


def measure_pages() -> Iterator[tuple[float, str]]:
    """The milliseconds and the URL of each page, for staff who see all centers."""
    # Models can be imported only after django.setup().
    from django.conf import settings
    from django.test import Client

    from accounts.models import User
    from reservations.demo.accounts import STAFF
    from tests.browser.accessibility import build_urls
    from tests.browser.day import complete_demo_data

    # In development, Django also keeps all queries.
    settings.DEBUG, settings.ALLOWED_HOSTS = False, ["testserver"]
    staff = User.objects.get(email=STAFF)
    staff.is_superuser = True
    staff.save()
    client = Client()
    client.force_login(staff)
    complete_demo_data()
    for url in dict.fromkeys([*dict(build_urls()), *(f"/admin/{path}" for path in LISTS)]):
        seconds = []
        for _ in range(1 + TIMES):
            start = time.process_time()
            response = client.get(url)
            is_page = response.status_code == HTTPStatus.OK
            if is_page and not response.streaming:
                assert response.content
            seconds.append(time.process_time() - start)
            if not is_page:
                break
        else:
            # The first request also compiles templates and queries.
            yield 1000 * min(seconds[1:]), url


if __name__ == "__main__":
    sys.exit(main())
