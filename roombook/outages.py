"""Logs responses with status 503: a warning for each, and one error if they go on.

A failover of the database takes seconds and needs nobody, so its responses must not look like
defects. The log has one error as soon as an outage lasts, whatever the number of workers.
"""

import fcntl
import logging
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

logger = logging.getLogger(__name__)

# An outage lasts if it has this many responses in this time. It ends with a pause without any.
MIN_SECONDS = 30.0
MIN_RESPONSES = 5
PAUSE_SECONDS = 60.0


class Outage(NamedTuple):
    """Responses with status 503 without a long pause between them. Times are monotonic."""

    started_at: float
    latest_at: float
    responses: int
    is_reported: bool

    @property
    def is_lasting(self) -> bool:
        seconds = self.latest_at - self.started_at
        return seconds >= MIN_SECONDS and self.responses >= MIN_RESPONSES


class OutageMonitor:
    """The current outage, shared by all processes that are forked after it is created."""

    STATE = struct.Struct("ddi?")

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process lives)
        self._lock = threading.Lock()

    def record_response(self, now: float) -> Outage:
        """Count a response, and return the outage as it should be logged.

        Exactly one response of a lasting outage returns it with `is_reported` false.
        """
        with self._locked():
            known = self._read()
            if known is None or now - known.latest_at > PAUSE_SECONDS:
                known = Outage(now, now, 0, is_reported=False)
            outage = known._replace(latest_at=now, responses=known.responses + 1)
            is_reported = outage.is_reported or outage.is_lasting
            self._write(outage._replace(is_reported=is_reported))
        return outage

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A lock of the file excludes other processes, and ends with a process that is killed.
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read(self) -> Outage | None:
        stored = os.pread(self._file.fileno(), self.STATE.size, 0)
        return Outage(*self.STATE.unpack(stored)) if stored else None

    def _write(self, outage: Outage) -> None:
        os.pwrite(self._file.fileno(), self.STATE.pack(*outage), 0)


class UnavailableFilter(logging.Filter):
    """Replaces the error with traceback that Django logs for a response with status 503."""

    def __init__(self) -> None:
        super().__init__()
        self.monitor = OutageMonitor()

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) != 503:
            return True
        reason = describe_error(record.exc_info[1] if record.exc_info else None)
        logger.warning("%s%s", record.getMessage(), reason)
        outage = self.monitor.record_response(time.monotonic())
        if outage.is_lasting and not outage.is_reported:
            logger.error(
                "The service has been unavailable for %.0f s: %s responses with status 503%s",
                *(outage.latest_at - outage.started_at, outage.responses, reason),
            )
        return False


def describe_error(error: BaseException | None) -> str:
    """Return the error and its cause, the first line of each: further ones may quote data."""
    reason = ""
    while error is not None:
        message = str(error).strip().split("\n")[0]
        reason += f": {type(error).__name__}: {message}"
        error = error.__cause__
    return reason
