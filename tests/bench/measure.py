"""Sends the same requests to all servers: first compares the responses, then measures.

Clients use little processor time: sockets, epoll, and requests that are encoded in advance.
"""

import difflib
import itertools
import json
import re
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.bench.cases import PATHS, READS, World
from tests.bench.servers import Server, get_cpu_seconds

# More distinct drafts than a server creates in a second, and how many are paid.
DRAFTS_PER_SECOND, CHECKOUTS_PER_SECOND = 2000, 100
CLIENTS = 8


@dataclass(slots=True)
class Series:
    """The results of one server and operation in all rounds."""

    per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    app_cpu: float = 0.0
    database_cpu: float = 0.0
    kilobytes: float = 0.0
    # The ends of responses other than 200.
    bad: list[bytes] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return statistics.median(self.per_second)

    def percentile(self, percent: int) -> float:
        return statistics.quantiles(self.milliseconds, n=100)[percent - 1]

    def per_request(self, total: float) -> float:
        """The average of a total over all requests."""
        return total / len(self.milliseconds)

    @property
    def cpu(self) -> float:
        """Processor milliseconds per request, of the application and the database."""
        return self.per_request(self.app_cpu + self.database_cpu) * 1000


class Bench:
    """roombook and the raw reference, on one database."""

    def __init__(
        self, app: Server, raw: Server, world: World, postmaster: int, seconds: float, rounds: int
    ) -> None:
        self.app, self.raw, self.world, self.postmaster = app, raw, world, postmaster
        self.seconds, self.rounds = seconds, rounds
        self._requests: dict[str, list[bytes]] = {}

    def requests(self, name: str) -> list[bytes]:
        if name not in self._requests:
            path, get_bodies = PATHS[name]
            count = int(self.seconds * DRAFTS_PER_SECOND)
            path = path if name in READS else PATHS["create"][0]
            bodies = itertools.islice(get_bodies(self.world), count)
            self._requests[name] = [encode_request(path, body) for body in bodies]
        return self._requests[name]

    def require_equal(self, name: str) -> None:
        """Ends the benchmark unless both servers respond the same."""
        for request in self.requests(name)[: 40 if name in READS else 10]:
            expected, response = (
                self._send_and_clear(server, name, request) for server in (self.app, self.raw)
            )
            if expected != response or expected[0] != 200:
                ours, raws = (
                    json.dumps(each, indent=1).split("\n") for each in (expected, response)
                )
                lines = [*difflib.unified_diff(ours, raws, "roombook", "raw", lineterm="")][:40]
                sys.exit("\n".join(["Responses differ:", request[-600:].decode(), *lines]))

    def _send_and_clear(self, server: Server, name: str, request: bytes) -> tuple[int, Any]:
        """Returns the response without ids of new rows, and deletes what it created."""
        answer = send(server.port, request)
        if name == "checkout":
            answer = send(server.port, self._checkouts()[0])
        if name not in READS:
            self.world.clear()
            return answer[0], without_ids(answer[1])
        return answer

    def compare(self, name: str) -> dict[str, Series]:
        """Measures in rounds that alternate between the servers, after a warm-up."""
        series = {server.name: Series() for server in (self.raw, self.app)}
        for server in (self.raw, self.app):
            self._run_round(server, name, Series(), share=1 / 3)
        for _ in range(self.rounds):
            for server in (self.raw, self.app):
                self._run_round(server, name, series[server.name])
        return series

    def _run_round(self, server: Server, name: str, series: Series, *, share: float = 1.0) -> None:
        requests: Iterator[bytes] = iter(self.requests(name))
        seconds = self.seconds * share
        if name in READS:
            requests = itertools.cycle(requests)
        elif name == "checkout":
            drafts = itertools.islice(requests, int(CHECKOUTS_PER_SECOND * seconds))
            drive(self.raw.port, drafts, Series(), seconds=600.0)
            requests, seconds = iter(self._checkouts()), 600.0
        before = [*map(get_cpu_seconds, (server.master.pid, self.postmaster))]
        drive(server.port, requests, series, seconds=seconds)
        series.app_cpu += get_cpu_seconds(server.master.pid) - before[0]
        series.database_cpu += get_cpu_seconds(self.postmaster) - before[1]
        if name not in READS:
            self.world.clear()

    def _checkouts(self) -> list[bytes]:
        return [
            encode_request(PATHS["checkout"][0], body | {"UseSavedPaymentInfo": True})
            for body in self.world.find_new_drafts()
        ]


def encode_request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def send(port: int, request: bytes) -> tuple[int, dict[str, Any]]:
    """Sends one request, and returns the status and the fields of the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        received = b"".join(iter(lambda: connection.recv(1 << 18), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def drive(port: int, requests: Iterator[bytes], series: Series, *, seconds: float) -> None:
    """Keeps CLIENTS connections busy for some seconds, or for all requests.

    Each request has its own connection, because neither server keeps connections open.
    """
    poll = select.epoll()
    connections: dict[int, tuple[socket.socket, float, list[bytes]]] = {}
    count = 0

    def start(request: bytes) -> None:
        at = time.perf_counter()
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(request)
        connections[connection.fileno()] = (connection, at, [])
        poll.register(connection, select.EPOLLIN)

    started_at = now = time.perf_counter()
    for request in itertools.islice(requests, CLIENTS):
        start(request)
    while connections:
        for number, _ in poll.poll(10):
            connection, at, parts = connections[number]
            part = connection.recv(1 << 18)
            if part:
                parts.append(part)
                continue
            now = time.perf_counter()
            poll.unregister(number)
            connection.close()
            del connections[number]
            count += 1
            series.milliseconds.append((now - at) * 1000)
            series.kilobytes += sum(map(len, parts)) / 1024
            if not b"".join(parts[:1]).startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")):
                series.bad.append(b"".join(parts)[-200:])
            if now < started_at + seconds:
                for request in itertools.islice(requests, 1):
                    start(request)
    series.per_second.append(count / (now - started_at))
    poll.close()


def without_ids(response: dict[str, Any]) -> dict[str, Any]:
    """A response about a new reservation, without the ids of the reservation and its attendees."""
    text = re.sub(r"\(reservation \d+\)", "(reservation)", json.dumps(response))
    fields: dict[str, Any] = json.loads(text)
    if reservation := fields.get("Reservation"):
        for each in (reservation, *reservation["Attendees"]):
            each.pop("Id")
    return fields
