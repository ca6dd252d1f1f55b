"""Comparing: the same requests to both servers, first for equal answers, then for time."""

import itertools
import json
import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from tests.bench.cases import PATHS, READS, World, request, requests_of
from tests.bench.load import Outcome, ask, drive
from tests.bench.servers import DatabaseCpu, Server

# Distinct drafts of a stretch: more than any server makes in its seconds.
DRAFTS_A_SECOND = 2000
CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """How long it is measured."""

    seconds: float = 3.0
    rounds: int = 5
    # Answers that are compared, checkouts of a stretch, slots that sixteen want.
    compared: int = 40
    checkouts: int = 300
    slots: int = 20


@dataclass(slots=True)
class Series:
    """What one server did with one operation, over all rounds."""

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

    def each(self, total: float) -> float:
        """A total, for each request."""
        return total / len(self.milliseconds)

    @property
    def cpu(self) -> float:
        """Milliseconds of processor a request: ours and the database's."""
        return self.each(self.app_cpu + self.database_cpu) * 1000


class Differs(AssertionError):
    """The two servers answer differently: nothing is timed."""


class Bench:
    """Two servers on one database."""

    def __init__(
        self, app: Server, raw: Server, world: World, database: DatabaseCpu, size: Size
    ) -> None:
        self.app = app
        self.raw = raw
        self.world = world
        self.database = database
        self.size = size
        self._requests: dict[str, list[bytes]] = {}

    def requests(self, name: str) -> list[bytes]:
        if name not in self._requests:
            if name in READS:
                self._requests[name] = requests_of(name, self.world)
            else:
                most = int(self.size.seconds * DRAFTS_A_SECOND)
                path, _ = PATHS["create"]
                bodies = itertools.islice(PATHS[name][1](self.world), most)
                self._requests[name] = [request(path, body) for body in bodies]
        return self._requests[name]

    # Equal answers

    def require_equal(self, name: str) -> None:
        """Both servers answer the same, or Differs."""
        if name in READS:
            for sent in self.requests(name)[: self.size.compared]:
                self._require_same(sent, ask(self.app.port, sent), ask(self.raw.port, sent))
        else:
            for sent in self.requests(name)[: max(4, self.size.compared // 4)]:
                told = [self._written(server, name, sent) for server in (self.app, self.raw)]
                self._require_same(sent, *told)

    def _written(self, server: Server, name: str, sent: bytes) -> tuple[int, Any]:
        """The answer without the numbers that every new row has anew; taken away again."""
        status, answer = ask(server.port, sent)
        if name == "checkout":
            status, answer = ask(server.port, self._checkouts()[0])
        self.world.clear()
        return status, without_numbers(answer)

    def _require_same(self, sent: bytes, one: tuple[int, Any], other: tuple[int, Any]) -> None:
        if one != other or one[0] != 200:
            path = sent.split(b" ", 2)[1].decode()
            raise Differs(f"{path}: {difference(one, other)}\nasked: {sent[-600:].decode()}")

    # Time

    def compare(self, name: str, targets: tuple[Server, ...]) -> dict[str, Series]:
        """Rounds that alternate between the servers, which are warm."""
        series = {server.name: Series() for server in targets}
        for server in targets:
            self.stretch(server, name, CLIENTS, Series(), warm=True)
        for _ in range(self.size.rounds):
            for server in targets:
                self.stretch(server, name, CLIENTS, series[server.name])
        return series

    def stretch(
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
            drive(self.raw.port, iter(self.requests(name)), CLIENTS, count=count)
            requests, seconds = iter(self._checkouts()), 600.0
        before = server.cpu(), self.database.cpu()
        outcome = drive(server.port, requests, clients, seconds=seconds)
        series.add(outcome, server.cpu() - before[0], self.database.cpu() - before[1])
        if name not in READS:
            self.world.clear()

    def _checkouts(self) -> list[bytes]:
        path, _ = PATHS["checkout"]
        return [
            request(
                path,
                {
                    "Token": self.world.token(user),
                    "ReservationId": pk,
                    "UseSavedPaymentInfo": True,
                },
            )
            for pk, user in self.world.made_since()
        ]

    # Sixteen for one slot

    def rivals(self, server: Server, clients: int = 16) -> tuple[list[int], float, int]:
        """How many got each slot, the slowest answer in milliseconds, and deadlocks."""
        path, _ = PATHS["create"]
        bodies = itertools.islice(self.world.drafts(), self.size.slots)
        deadlocks = self._deadlocks()
        won, slowest = [], 0.0
        for body in bodies:
            tokens = {self.world.anybody() for _ in range(4 * clients)}
            sent = [request(path, body | {"Token": token}) for token in list(tokens)[:clients]]
            outcome = drive(server.port, iter(sent), clients, seconds=60)
            won.append(outcome.count - len(outcome.bad))
            slowest = max(slowest, *outcome.milliseconds)
        self.world.clear()
        return won, slowest, self._deadlocks() - deadlocks

    def _deadlocks(self) -> int:
        [[count]] = self.world.rows(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(count)


def without_numbers(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer about a new reservation, as if that and its attendees had no numbers."""
    told: dict[str, Any] = json.loads(
        re.sub(r"\(reservation \d+\)", "(reservation)", json.dumps(answer))
    )
    reservation = told.get("Reservation")
    if reservation:
        usages = [*reservation.get("Allowances", ()), *reservation.get("UsableAllowances", ())]
        for each in (
            *(reservation, *reservation["Attendees"]),
            *(usage["Reservation"] for usage in usages),
        ):
            each.pop("Id")
    return told


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two answers part."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if one.get(key) != other.get(key):
                return difference(one.get(key), other.get(key), f"{path}.{key}")
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for place, (a, b) in enumerate(zip(one, other, strict=False)):
            if a != b:
                return difference(a, b, f"{path}[{place}]")
    return f"{path}: roombook {str(one)[:500]}, raw {str(other)[:500]}"
