"""Reads from a replica of the database (DATABASE_REPLICA_URL), where that is allowed.

Only functions that are decorated with `reads_from_replica` read from it, never inside a
transaction. A thread of each process checks every second how far the replica is behind the primary.
A replica that is too far behind, or away, is left out: then the primary answers.
"""

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections, models

from roombook.logging import describe_error
from roombook.metrics.counters import REPLICA_READS

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

REPLICA_ALIAS = "replica"
CHECK_SECONDS = 1.0
# A check that hangs must not keep the replica in use.
CHECK_VALID_SECONDS = 3.0
# After a request has failed on the replica, it is left out for so long.
PAUSE_SECONDS = 5.0
# query_canceled: the statement took too long, so it would take too long on the primary too.
STATEMENT_TIMEOUT_CODE = "57014"
# serialization_failure: the replica could not keep the rows that the statement reads.
RECOVERY_CONFLICT_CODE = "40001"

PRIMARY_POSITION = "SELECT pg_current_wal_lsn() - '0/0'"
REPLICA_POSITION = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0' END"

_read_alias: ContextVar[str] = ContextVar("read_alias", default=DEFAULT_DB_ALIAS)


def get_read_alias() -> str:
    """The database from which the current function reads."""
    alias = _read_alias.get()
    if alias != DEFAULT_DB_ALIAS and connections[DEFAULT_DB_ALIAS].in_atomic_block:
        return DEFAULT_DB_ALIAS
    return alias


class ReplicaRouter:
    """Django's database router: everything but reads of decorated functions uses the primary."""

    def db_for_read(self, model: type[models.Model], **hints: object) -> str:
        return get_read_alias()

    def db_for_write(self, model: type[models.Model], **hints: object) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, first: models.Model, second: models.Model, **hints: object) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool:
        return db == DEFAULT_DB_ALIAS


def is_configured() -> bool:
    return REPLICA_ALIAS in settings.DATABASES


def reads_from_replica(function: Callable[P, R]) -> Callable[P, R]:
    """Let the function read from the replica if that is usable. It must not write anything.

    What it reads may be DATABASE_REPLICA_LAG_SECONDS old, and a second more. If the replica fails,
    the function runs again on the primary.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_configured() or connections[DEFAULT_DB_ALIAS].in_atomic_block:
            return function(*args, **kwargs)
        if monitor.is_usable():
            token = _read_alias.set(REPLICA_ALIAS)
            try:
                result = function(*args, **kwargs)
                REPLICA_READS.labels("replica").inc()
                return result
            except (DatabaseError, InterfaceError) as error:
                code = getattr(error.__cause__, "pgcode", None)
                if code == STATEMENT_TIMEOUT_CODE:
                    raise
                if code != RECOVERY_CONFLICT_CODE:
                    monitor.pause(error)
                    connections[REPLICA_ALIAS].close()
            finally:
                _read_alias.reset(token)
        REPLICA_READS.labels("primary").inc()
        return function(*args, **kwargs)

    return wrapper


class ReplicaMonitor:
    """Decides whether the replica is used. Its thread starts with the first question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._usable_until = 0.0
        self._paused_until = 0.0
        self._problem: str | None = None

    def is_usable(self) -> bool:
        """Whether the latest check has found the replica close enough behind the primary."""
        if self._thread is None:
            self._start()
        return self._paused_until <= time.monotonic() < self._usable_until

    def pause(self, error: Exception) -> None:
        """Leave the replica out for some seconds, because a request has failed there."""
        self._paused_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("The replica failed, and the primary answers%s.", describe_error(error))

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="replica")
                self._thread.start()

    def _run(self) -> None:
        lag = ReplicaLag(settings.DATABASE_REPLICA_LAG_SECONDS)
        while True:
            started = time.monotonic()
            try:
                problem = lag.check()
            except (DatabaseError, InterfaceError) as error:
                problem = describe_error(error)
            if problem:
                # The next check may find another server, or the same one as a standby.
                for alias in (DEFAULT_DB_ALIAS, REPLICA_ALIAS):
                    connections[alias].close()
            self._usable_until = 0.0 if problem else started + CHECK_VALID_SECONDS
            if problem != self._problem:
                state = f"left out: {problem}" if problem else "used again"
                logger.warning("The replica is %s.", state)
                self._problem = problem
            time.sleep(CHECK_SECONDS)


class ReplicaLag:
    """Compares the positions of primary and replica in the log of changes.

    The lag is the age of the latest position of the primary that the replica has replayed. Unlike
    the time of the last replayed transaction, this works while the primary is idle, and while the
    replica is cut off from it.
    """

    def __init__(self, max_seconds: int) -> None:
        self.max_seconds = max_seconds
        # Times and positions of the primary, the oldest first.
        self._positions: deque[tuple[float, int]] = deque(
            maxlen=int((max_seconds + PAUSE_SECONDS) / CHECK_SECONDS) + 1
        )

    def check(self) -> str | None:
        """Return what is wrong with the replica, or None. Raises the errors of the databases."""
        now = time.monotonic()
        position = read_position(DEFAULT_DB_ALIAS, PRIMARY_POSITION)
        replayed = read_position(REPLICA_ALIAS, REPLICA_POSITION)
        if position is None or replayed is None:
            return "it is not a standby"
        self._positions.append((now, position))
        reached = [at for at, known in self._positions if known <= replayed]
        if not reached or now - reached[-1] > self.max_seconds:
            return f"it is more than {self.max_seconds} s behind"
        return None


def read_position(alias: str, sql: str) -> int | None:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        [position] = cursor.fetchone()
    return None if position is None else int(position)


monitor = ReplicaMonitor()
