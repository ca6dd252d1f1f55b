"""Clients that use little processor time: sockets, epoll, and requests encoded in advance."""

import json
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.bench.servers import HOST


@dataclass(slots=True)
class Outcome:
    """The result of a period of load."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    # The ends of responses other than 200.
    bad: list[bytes] = field(default_factory=list)
    kilobytes: float = 0.0

    @property
    def count(self) -> int:
        return len(self.milliseconds)

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0


def encode_request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
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


def drive(
    port: int, requests: Iterator[bytes], clients: int, *, seconds: float = 0.0, count: int = 0
) -> Outcome:
    """Keeps `clients` connections busy for some seconds, for `count` requests, or for all requests.

    Each request has its own connection, because neither server keeps connections open.
    """
    outcome = Outcome()
    poll = select.epoll()
    connections: dict[int, tuple[socket.socket, float, list[bytes]]] = {}
    started_count = 0
    started_at = now = time.perf_counter()
    deadline = started_at + seconds if seconds else float("inf")

    def start_request() -> bool:
        nonlocal started_count
        if count and started_count >= count:
            return False
        request = next(requests, None)
        if request is None:
            return False
        started_count += 1
        at = time.perf_counter()
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(request)
        connections[connection.fileno()] = (connection, at, [])
        poll.register(connection, select.EPOLLIN)
        return True

    for _ in range(clients):
        start_request()
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
            outcome.milliseconds.append((now - at) * 1000)
            outcome.kilobytes += sum(map(len, parts)) / 1024
            first = parts[0][:15] if parts else b""
            if not first.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")):
                outcome.bad.append(b"".join(parts)[-200:])
            if now < deadline:
                start_request()
    outcome.seconds = now - started_at
    poll.close()
    return outcome
