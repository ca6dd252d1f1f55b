"""Commands that run regularly: `manage.py run_jobs` runs each at its turns (docs/metrics.md).

Each run is a process of its own, forked from one that has loaded everything: a job that is slow,
hangs or crashes delays no other one, and leaves neither memory nor a connection behind.
"""

import datetime as dt
import io
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path

from django.conf import settings
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from roombook.models import JobRun

logger = logging.getLogger(__name__)

JOB_INTERVALS = {
    "reconcile_payments": dt.timedelta(minutes=1),
    "send_outbox": dt.timedelta(minutes=1),
    "send_webhooks": dt.timedelta(minutes=1),
    "expire_reservations": dt.timedelta(minutes=5),
    "erase_expired": dt.timedelta(hours=1),
    "verify_integrity": dt.timedelta(days=1),
}
# How soon a signal and the end of a job are noticed.
TICK_SECONDS = 0.2
# The pause after the database could not be reached.
RETRY_SECONDS = 5.0


class RegularJob(BaseCommand):
    """A command of `JOB_INTERVALS`. It stores when it last ended, however it was started.

    A CommandError means that it did its work, and that something needs attention.
    """

    def execute(self, *args: object, **options: object) -> str | None:
        try:
            output = super().execute(*args, **options)
        except SystemCheckError:
            raise  # It did not run at all.
        except CommandError:
            self._record(has_succeeded=False)
            raise
        self._record(has_succeeded=True)
        return output

    def _record(self, *, has_succeeded: bool) -> None:
        command = type(self).__module__.rpartition(".")[2]
        now = timezone.now()  # noqa: TID251 (a command reads the clock)
        JobRun.objects.record(command, now=now, has_succeeded=has_succeeded)


@dataclass
class JobRunner:
    """Runs jobs at their turns until it gets SIGTERM or SIGINT, or the process `parent` has ended.

    A turn belongs to the machine that takes it first.
    """

    intervals: Mapping[str, dt.timedelta]
    parent: int | None = None
    is_quiet: bool = False
    # After so many seconds a run is killed. Any run may end at any point, as in a crash.
    max_run_seconds: int = 30 * 60
    # How long running jobs may take to end when the service stops. The unit of systemd allows more.
    stop_seconds: float = 20
    is_stopping: bool = field(default=False, init=False)
    runs: dict[str, ForkProcess] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        # Once, so that the runs do not load them again, from files of a newer version perhaps.
        self.commands = {
            name: load_command_class(get_commands()[name], name) for name in self.intervals
        }

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        next_turn = time.monotonic()
        while not self.is_stopping and self.parent in {None, os.getppid()}:
            if self._forget_ended_runs() or time.monotonic() >= next_turn:
                next_turn = time.monotonic() + self._start_due_jobs()
            time.sleep(TICK_SECONDS)
        self._stop()

    def _request_stop(self, *_: object) -> None:
        self.is_stopping = True

    def _start_due_jobs(self) -> float:
        """Start the jobs whose turn it is. Returns the seconds until the next turn."""
        now = timezone.now()  # noqa: TID251 (a command reads the clock)
        idle = {name: each for name, each in self.intervals.items() if name not in self.runs}
        try:
            taken, next_turn_at = JobRun.objects.take_turns(idle, now=now)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("No job is started, because the database fails: %s", error)
            return RETRY_SECONDS
        finally:
            # The runs must not share it.
            connection.close()
        for name in taken:
            self.runs[name] = multiprocessing.get_context("fork").Process(
                target=self._run_job, args=[name]
            )
            self.runs[name].start()
        return (next_turn_at - now).total_seconds()

    def _run_job(self, name: str) -> None:
        """What a run does. Only the runner ends it, so that it can finish its work."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        signal.alarm(self.max_run_seconds)
        log = logging.getLogger(f"{__name__}.{name}")
        output = io.StringIO() if self.is_quiet else LogWriter(log)
        try:
            call_command(self.commands[name], stdout=output, stderr=output)
        except CommandError as error:
            log.error("%s needs attention: %s", name, error)
        except Exception:
            log.exception("%s has crashed.", name)
        else:
            return
        if settings.SENTRY_DSN:
            import sentry_sdk

            sentry_sdk.flush()
        sys.exit(1)

    def _forget_ended_runs(self) -> bool:
        """Report the runs that have failed. Returns whether any has ended."""
        ended = {name: run for name, run in self.runs.items() if run.exitcode is not None}
        for name, run in ended.items():
            del self.runs[name]
            if run.exitcode != 0:
                report_failure(name, run)
        return bool(ended)

    def _stop(self) -> None:
        end = time.monotonic() + self.stop_seconds
        for run in self.runs.values():
            run.join(max(end - time.monotonic(), 0))
        self._forget_ended_runs()
        if not self.runs:
            return
        for run in self.runs.values():
            run.kill()
            run.join()
        logger.warning("Killed, and due at the next start: %s", ", ".join(self.runs))
        with suppress(DatabaseError, InterfaceError):
            JobRun.objects.return_turns(self.runs)


class LogWriter(io.TextIOBase):
    """Logs what a command prints, line by line."""

    def __init__(self, log: logging.Logger) -> None:
        self.log = log

    def write(self, text: str) -> int:
        for line in text.splitlines():
            self.log.info("%s", line)
        return len(text)


def report_failure(name: str, run: ForkProcess) -> None:
    """Log a run that was killed; the others have logged why they failed.

    Under systemd, roombook-job-failed.path sees the file, and sends the log of the run to root.
    """
    assert run.exitcode is not None
    if run.exitcode < 0:
        logger.error("%s was ended by %s.", name, signal.Signals(-run.exitcode).name)
    if folder := os.environ.get("RUNTIME_DIRECTORY"):
        Path(folder, f"{name}.{run.pid}").touch()
