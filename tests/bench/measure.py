"""Sends the same requests to all servers: first compares the responses, then measures."""

import itertools
import json
import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from tests.bench.cases import PATHS, READS, World, get_requests
from tests.bench.load import Outcome, drive, encode_request, send
from tests.bench.servers import DatabaseCpu, Server

# More distinct drafts than a server creates in a second.
DRAFTS_PER_SECOND = 2000
CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """The duration and the number of measurements."""

    seconds: float = 3.0
    rounds: int = 5
    # Compared responses, checkouts per round, slots that sixteen clients want.
    compared: int = 40
    checkouts: int = 300
    slots: int = 20


@dataclass(slots=True)
class Series:
    """The results of one server and operation in all rounds."""

    per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    app_cpu: float = 0.0
    database_cpu: float = 0.0
    kilobytes: float = 0.0
    bad: list[bytes] = field(default_factory=list)

    def add(self, outcome: Outcome, app_cpu: float, database_cpu: float) -> None:
        self.per_second.append(outcome.per_second)
        self.milliseconds += outcome.milliseconds
        self.app_cpu += app_cpu
        self.database_cpu += database_cpu
        self.kilobytes += outcome.kilobytes
        self.bad += outcome.bad

    @property
    def rate(self) -> float:
        return statistics.median(self.per_second)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def per_request(self, total: float) -> float:
        """The average of a total over all requests."""
        return total / len(self.milliseconds)

    @property
    def cpu(self) -> float:
        """Processor milliseconds per request, of the application and the database."""
        return self.per_request(self.app_cpu + self.database_cpu) * 1000


class ResponsesDiffer(AssertionError):
    """Two servers respond differently. Nothing is measured."""


class Bench:
    """roombook and the raw references, on one database."""

    def __init__(
        self, app: Server, raws: list[Server], world: World, database: DatabaseCpu, size: Size
    ) -> None:
        self.app = app
        self.raws = raws
        self.world = world
        self.database = database
        self.size = size
        self._requests: dict[str, list[bytes]] = {}

    def requests(self, name: str) -> list[bytes]:
        if name not in self._requests:
            if name in READS:
                self._requests[name] = get_requests(name, self.world)
            else:
                count = int(self.size.seconds * DRAFTS_PER_SECOND)
                path, _ = PATHS["create"]
                bodies = itertools.islice(PATHS[name][1](self.world), count)
                self._requests[name] = [encode_request(path, body) for body in bodies]
        return self._requests[name]

    # Equal responses

    def require_equal(self, name: str) -> None:
        """Raises ResponsesDiffer unless all servers respond the same."""
        if name in READS:
            for request in self.requests(name)[: self.size.compared]:
                expected = send(self.app.port, request)
                for raw in self.raws:
                    self._require_same(request, expected, send(raw.port, request))
        else:
            for request in self.requests(name)[: max(4, self.size.compared // 4)]:
                expected = self._send_and_clear(self.app, name, request)
                for raw in self.raws:
                    response = self._send_and_clear(raw, name, request)
                    self._require_same(request, expected, response)

    def _send_and_clear(self, server: Server, name: str, request: bytes) -> tuple[int, Any]:
        """Returns the response without ids of new rows, and deletes what it created."""
        status, fields = send(server.port, request)
        if name == "checkout":
            status, fields = send(server.port, self._checkouts()[0])
        self.world.clear()
        return status, without_ids(fields)

    def _require_same(
        self, request: bytes, expected: tuple[int, Any], response: tuple[int, Any]
    ) -> None:
        if expected != response or expected[0] != 200:
            path = request.split(b" ", 2)[1].decode()
            difference = describe_difference(expected, response)
            raise ResponsesDiffer(f"{path}: {difference}\nrequest: {request[-600:].decode()}")

    # Speed

    def compare(self, name: str, targets: tuple[Server, ...]) -> dict[str, Series]:
        """Measures in rounds that alternate between the servers, after a warm-up."""
        series = {server.name: Series() for server in targets}
        for server in targets:
            self.run_round(server, name, CLIENTS, Series(), warm=True)
        for _ in range(self.size.rounds):
            for server in targets:
                self.run_round(server, name, CLIENTS, series[server.name])
        return series

    def run_round(
        self, server: Server, name: str, clients: int, series: Series, *, warm: bool = False
    ) -> None:
        seconds = self.size.seconds / (3 if warm else 1)
        requests: Any
        if name in READS:
            requests = itertools.cycle(self.requests(name))
        elif name == "create":
            requests = iter(self.requests(name))
        else:
            count = self.size.checkouts // (10 if warm else 1)
            drive(self.raws[0].port, iter(self.requests(name)), CLIENTS, count=count)
            requests, seconds = iter(self._checkouts()), 600.0
        before = server.get_cpu_seconds(), self.database.get_cpu_seconds()
        outcome = drive(server.port, requests, clients, seconds=seconds)
        series.add(
            outcome,
            server.get_cpu_seconds() - before[0],
            self.database.get_cpu_seconds() - before[1],
        )
        if name not in READS:
            self.world.clear()

    def _checkouts(self) -> list[bytes]:
        path, _ = PATHS["checkout"]
        return [
            encode_request(
                path,
                {
                    "Token": self.world.get_token(user),
                    "ReservationId": pk,
                    "UseSavedPaymentInfo": True,
                },
            )
            for pk, user in self.world.find_new_drafts()
        ]

    # Sixteen clients for one slot

    def compete(self, server: Server, clients: int = 16) -> tuple[list[int], float, int]:
        """Returns how many clients got each slot, the slowest response in ms, and the deadlocks."""
        path, _ = PATHS["create"]
        bodies = itertools.islice(self.world.drafts(), self.size.slots)
        deadlocks = self._deadlocks()
        winners, slowest = [], 0.0
        for body in bodies:
            tokens = {self.world.get_any_token() for _ in range(4 * clients)}
            requests = [
                encode_request(path, body | {"Token": token}) for token in list(tokens)[:clients]
            ]
            outcome = drive(server.port, iter(requests), clients, seconds=60)
            winners.append(outcome.count - len(outcome.bad))
            slowest = max(slowest, *outcome.milliseconds)
        self.world.clear()
        return winners, slowest, self._deadlocks() - deadlocks

    def _deadlocks(self) -> int:
        [[count]] = self.world.rows(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(count)


def without_ids(response: dict[str, Any]) -> dict[str, Any]:
    """A response about a new reservation, without the ids of the reservation and its attendees."""
    fields: dict[str, Any] = json.loads(
        re.sub(r"\(reservation \d+\)", "(reservation)", json.dumps(response))
    )
    reservation = fields.get("Reservation")
    if reservation:
        usages = [*reservation.get("Allowances", ()), *reservation.get("UsableAllowances", ())]
        for each in (
            *(reservation, *reservation["Attendees"]),
            *(usage["Reservation"] for usage in usages),
        ):
            each.pop("Id")
    return fields


def describe_difference(one: Any, other: Any, path: str = "") -> str:
    """The first field in which two responses differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if one.get(key) != other.get(key):
                return describe_difference(one.get(key), other.get(key), f"{path}.{key}")
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for place, (a, b) in enumerate(zip(one, other, strict=False)):
            if a != b:
                return describe_difference(a, b, f"{path}[{place}]")
    return f"{path}: roombook {str(one)[:500]}, raw {str(other)[:500]}"
