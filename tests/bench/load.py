"""Clients that take little processor time: sockets and epoll, requests that are bytes already."""

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
    """What came of a stretch of load."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    # Answers that were not 200, by what they began with.
    bad: list[bytes] = field(default_factory=list)
    kilobytes: float = 0.0

    @property
    def count(self) -> int:
        return len(self.milliseconds)

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0


def request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def ask(port: int, sent: bytes) -> tuple[int, dict[str, Any]]:
    """One request, and its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        received = b"".join(iter(lambda: connection.recv(1 << 18), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def drive(
    port: int, requests: Iterator[bytes], clients: int, *, seconds: float = 0.0, count: int = 0
) -> Outcome:
    """Keep so many clients busy for a while, or until so many requests are answered, or there are
    no more. Each request is a connection of its own, as neither server keeps one open."""
    outcome = Outcome()
    poll = select.epoll()
    open_: dict[int, tuple[socket.socket, float, list[bytes]]] = {}
    begun = 0
    start = now = time.perf_counter()
    deadline = start + seconds if seconds else float("inf")

    def begin() -> bool:
        nonlocal begun
        if count and begun >= count:
            return False
        sent = next(requests, None)
        if sent is None:
            return False
        begun += 1
        at = time.perf_counter()
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(sent)
        open_[connection.fileno()] = (connection, at, [])
        poll.register(connection, select.EPOLLIN)
        return True

    for _ in range(clients):
        begin()
    while open_:
        for number, _ in poll.poll(10):
            connection, at, parts = open_[number]
            part = connection.recv(1 << 18)
            if part:
                parts.append(part)
                continue
            now = time.perf_counter()
            poll.unregister(number)
            connection.close()
            del open_[number]
            outcome.milliseconds.append((now - at) * 1000)
            outcome.kilobytes += sum(map(len, parts)) / 1024
            first = parts[0][:15] if parts else b""
            if not first.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")):
                outcome.bad.append(b"".join(parts)[-200:])
            if now < deadline:
                begin()
    outcome.seconds = now - start
    poll.close()
    return outcome
