"""Customers' phones: real HTTP, many at once, and stubborn where that is right."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.faults.size import ERRAND_SECONDS, REQUEST_SECONDS

# A connection that broke or was refused: whoever answered it died.
BROKEN_CONNECTION = 0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, Any] = field(default_factory=dict)
    ms: float = 0.0

    @property
    def code(self) -> str:
        """What it says in one word: the reservation's status, or the error's stable code."""
        error = self.body.get("Error") or {}
        return str(self.body.get("Status") or error.get("Summary") or self.status)

    @property
    def is_defect(self) -> bool:
        return self.status >= 500 and self.status != 503


@dataclass(frozen=True, slots=True)
class CustomerClient:
    """One customer's app."""

    port: int
    token: str

    def post(self, path: str, **body: Any) -> Answer:
        data = json.dumps({"Token": self.token, **body})
        return send(self.port, f"/api/{path}", data, {"Content-Type": "application/json"})

    def checkout(self, reservation_id: int, card: dict[str, Any], **more: Any) -> Answer:
        return self.post(
            "reservations/checkout", ReservationId=reservation_id, PaymentInfo=card, **more
        )

    def cancel(self, reservation_id: int) -> Answer:
        return self.post("reservations/cancel", ReservationId=reservation_id)


@dataclass(frozen=True, slots=True)
class StaffClient:
    """A member of staff in the admin."""

    port: int
    session: str

    def run_action(self, action: str, reservation_id: int, **more: Any) -> Answer:
        csrf = "c" * 32
        data = urlencode(
            {
                "action": action,
                # The page before it has shown what it would do.
                "confirmed": "yes",
                "_selected_action": reservation_id,
                "csrfmiddlewaretoken": csrf,
                **more,
            }
        )
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": f"sessionid={self.session}; csrftoken={csrf}",
        }
        return send(self.port, "/admin/reservations/reservation/", data, headers)


def send(port: int, path: str, data: str, headers: dict[str, str]) -> Answer:
    """One request on its own connection; a broken one is an answer too."""
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS)
    try:
        connection.request("POST", path, data, headers)
        response = connection.getresponse()
        text = response.read()
        status = response.status
    except (OSError, http.client.HTTPException):
        status, text = BROKEN_CONNECTION, b""
    finally:
        connection.close()
    ms = (time.monotonic() - start) * 1000
    try:
        body = json.loads(text)
    except ValueError:
        body = {}
    return Answer(status, body if isinstance(body, dict) else {}, ms)


def run_concurrently(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """All calls from the same moment on, each in its own thread; their results in order."""
    waiting = list(calls)
    barrier = threading.Barrier(len(waiting))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(timeout=30)
        return call()

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(run, waiting))


def retry_until_resolved(
    call: Callable[[], Answer],
    *,
    received: list[Answer] | None = None,
    patience: float = ERRAND_SECONDS,
    pause: float = 0.1,
) -> Answer:
    """Ask again while the connection breaks, the service is away or the payment is in doubt."""
    deadline = time.monotonic() + patience
    while True:
        answer = call()
        if received is not None:
            received.append(answer)
        settled = answer.status not in {BROKEN_CONNECTION, 503} and answer.code != "Processing"
        if settled or time.monotonic() > deadline:
            return answer
        time.sleep(pause)
