"""HTTP clients of customers, which can send many requests in parallel and retry them."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.faults.size import REQUEST_SECONDS, RETRY_SECONDS

# The status of a request whose connection was reset or refused.
BROKEN_CONNECTION = 0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, Any] = field(default_factory=dict)
    ms: float = 0.0

    @property
    def code(self) -> str:
        """The status of the reservation, or the code of the error."""
        if self.body.get("IsApplied") is False:  # the payment of a change is not resolved
            return "Processing"
        error = self.body.get("Error") or {}
        return str(self.body.get("Status") or error.get("Summary") or self.status)


@dataclass(frozen=True, slots=True)
class CustomerClient:
    """The app of one customer."""

    port: int
    token: str

    def post(self, path: str, *, key: str | None = None, **body: Any) -> Answer:
        """Send a request, with an Idempotency-Key if there is one."""
        data = json.dumps({"Token": self.token, **body})
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return send(self.port, f"/api/{path}", data, headers)

    def checkout(self, reservation_id: int, card: dict[str, Any], **more: Any) -> Answer:
        return self.post(
            "reservations/checkout", ReservationId=reservation_id, PaymentInfo=card, **more
        )

    def change(self, reservation_id: int, **more: Any) -> Answer:
        return self.post("reservations/change", ReservationId=reservation_id, **more)

    def cancel(self, reservation_id: int) -> Answer:
        return self.post("reservations/cancel", ReservationId=reservation_id)


def send(port: int, path: str, data: str, headers: dict[str, str]) -> Answer:
    """Send one request on its own connection. A broken connection is an answer too."""
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
    """Start all calls at the same time, each in its own thread. Returns their results in order."""
    all_calls = list(calls)
    barrier = threading.Barrier(len(all_calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(timeout=30)
        return call()

    with ThreadPoolExecutor(len(all_calls)) as pool:
        return list(pool.map(run, all_calls))


def retry_until_resolved(
    call: Callable[[], Answer],
    *,
    received: list[Answer] | None = None,
    timeout: float = RETRY_SECONDS,
    pause: float = 0.1,
) -> Answer:
    """Retry while the connection breaks, the service is away or the payment is not resolved."""
    deadline = time.monotonic() + timeout
    while True:
        answer = call()
        if received is not None:
            received.append(answer)
        is_resolved = answer.status not in {BROKEN_CONNECTION, 503} and answer.code != "Processing"
        if is_resolved or time.monotonic() > deadline:
            return answer
        time.sleep(pause)
