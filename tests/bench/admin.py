"""How long pages of the back office take at that size."""

import http.client
import re
import statistics
import time
from collections.abc import Iterator
from urllib.parse import urlencode

from reservations.generate.people import PASSWORD, administrator_of
from reservations.office.books import REPORTS
from tests.bench.cases import World
from tests.bench.cluster import SEED
from tests.bench.servers import HOST, Server

TIMES = 5
LISTS = (
    "",
    "reservations/reservation/",
    "reservations/reservation/?q=garcia",
    "reservations/reservation/?status__exact=Confirmed",
    "centers/center/",
    "centers/center/?q=denver",
    "centers/meetingroom/",
    "centers/rate/",
    "centers/service/",
    "accounts/user/",
    "accounts/user/?q=garcia",
    "payments/payment/",
    "payments/refund/",
)


def addresses(world: World) -> list[str]:
    """Lists, and what there is of a busy center, its busiest room and a booking of it."""
    [[center, room, booking]] = world.rows(
        """SELECT r.center_id, r.id, max(v.id) FROM reservations_reservation v
             JOIN centers_meetingroom r ON r.id = v.room_id
           WHERE v.start > now() AND v.status = 'Confirmed'
           GROUP BY r.id ORDER BY count(*) DESC, r.id LIMIT 1"""
    )
    [[day]] = world.rows(
        "SELECT start::date FROM reservations_reservation WHERE id = %s", (booking,)
    )
    of_one = (
        f"reservations/reservation/timeline/?center={center}&date={day}",
        f"reservations/reservation/timeline/week/?room={room}&date={day}",
        f"reservations/reservation/{booking}/change/",
        f"centers/center/{center}/change/",
        f"accounts/user/{world.first_customer}/change/",
    )
    reports = (f"reservations/reservation/reports/{name}/" for name in REPORTS)
    return [f"/admin/{path}" for path in (*LISTS, *of_one, *reports)]


class Desk:
    """A member of staff who is signed in."""

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


def pages(server: Server, world: World) -> Iterator[tuple[str, int, float, float]]:
    """Each page: its address, status, milliseconds the first time and thereafter."""
    desk = Desk(server, administrator_of(SEED))
    for path in addresses(world):
        taken = []
        status = 0
        for _ in range(TIMES):
            start = time.perf_counter()
            status, _ = desk.get(path)
            taken.append((time.perf_counter() - start) * 1000)
        yield path, status, taken[0], statistics.median(taken[1:])
