"""Measures the pages of the back office."""

import http.client
import re
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from reservations.admin.reports.pages import REPORTS
from tests.bench.cases import World
from tests.bench.cluster import SEED
from tests.bench.generate.people import PASSWORD, get_administrator_email
from tests.bench.servers import HOST, Server

TIMES = 5
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
REPORT = "reservations/reservation/reports"
# The utilization report needs a center, because it is limited to some hundred rooms.
REPORTS_OF_ALL_CENTERS = tuple(f"{REPORT}/{name}/" for name in REPORTS if name != "utilization")
# The pages of staff with a role at some centers only.
MANAGED_CENTERS = 200
PAGES_OF_MANAGER = (
    "",
    "reservations/reservation/",
    "reservations/reservation/?q=garcia",
    "centers/meetingroom/",
    "accounts/user/",
    "accounts/user/?q=garcia",
    "payments/payment/",
    *(f"{REPORT}/{name}/" for name in REPORTS),
)


def get_detail_pages(world: World) -> list[str]:
    """The pages of a busy room, its center and one of its reservations."""
    [[center, room, booking]] = world.rows(
        """SELECT r.center_id, r.id, max(v.id) FROM reservations_reservation v
             JOIN centers_meetingroom r ON r.id = v.room_id
           WHERE v.start > now() AND v.status = 'Confirmed'
           GROUP BY r.id ORDER BY count(*) DESC, r.id LIMIT 1"""
    )
    [[day]] = world.rows(
        "SELECT start::date FROM reservations_reservation WHERE id = %s", (booking,)
    )
    return [
        f"reservations/reservation/timeline/?center={center}&date={day}",
        f"reservations/reservation/timeline/center/?center={center}&date={day}",
        f"reservations/reservation/timeline/week/?room={room}&date={day}",
        f"reservations/reservation/add/?room={room}",
        f"reservations/reservation/{booking}/change/",
        f"centers/center/{center}/change/",
        f"accounts/user/{world.first_customer}/change/",
        *(f"{REPORT}/{name}/?center={center}" for name in REPORTS),
    ]


def create_manager(world: World) -> str:
    """Creates a Manager of some centers, and returns the e-mail address.

    The password is the administrator's.
    """
    email = "manager-of-some@bench.example"
    world.rows(
        """WITH made AS (
             INSERT INTO accounts_user (email, password, first_name, last_name, company_name,
               phone_number, thumbnail, is_superuser, is_staff, is_active, date_joined)
             SELECT %s, password, 'Manager', 'Of some', '', '', '', false, true, true, now()
               FROM accounts_user WHERE email = %s
             ON CONFLICT DO NOTHING RETURNING id)
           INSERT INTO accounts_centerrole (user_id, center_id, group_id)
           SELECT made.id, c.id, g.id
             FROM made, (SELECT id FROM centers_center ORDER BY id LIMIT %s) c, auth_group g
            WHERE g.name = 'Manager' RETURNING id""",
        (email, get_administrator_email(SEED), MANAGED_CENTERS),
    )
    return email


class StaffSession:
    """A browser session of a member of staff."""

    def __init__(self, server: Server, email: str) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        _, page = self.get("/admin/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, page[:500]
        form = {
            "username": email,
            "password": PASSWORD,
            "csrfmiddlewaretoken": token.group(1),
            "next": "/admin/",
        }
        status, page = self.send("POST", "/admin/login/", urlencode(form))
        assert status == 302, f"not signed in: {status}"

    def get(self, path: str) -> tuple[int, str]:
        return self.send("GET", path)

    def send(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        headers = {
            "Host": HOST,
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        page = response.read().decode(errors="replace")
        for cookie in response.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        connection.close()
        return response.status, page


class PageTiming(NamedTuple):
    """The time of a page in milliseconds: the first request, and the median of later ones."""

    staff: str
    path: str
    status: int
    first: float
    later: float


def measure_pages(server: Server, world: World) -> Iterator[PageTiming]:
    """Measures the pages, beginning with the dashboard as it opens after signing in."""
    everywhere = ("", *LISTS, *get_detail_pages(world), *REPORTS_OF_ALL_CENTERS)
    for staff, email, paths in (
        ("all centers", get_administrator_email(SEED), everywhere),
        (f"{MANAGED_CENTERS} centers", create_manager(world), PAGES_OF_MANAGER),
    ):
        session = StaffSession(server, email)
        for path in paths:
            yield measure_page(session, staff, f"/admin/{path}")


def measure_page(session: StaffSession, staff: str, path: str) -> PageTiming:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        status, _ = session.get(path)
        taken.append((time.perf_counter() - start) * 1000)
    return PageTiming(staff, path, status, taken[0], statistics.median(taken[1:]))
