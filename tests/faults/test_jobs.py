"""`manage.py run_jobs` as real processes: turns, failures, two machines, and the end.

tests/commands has what each command does; tests/test_serve.py and test_install.py who starts them.
"""

import datetime as dt
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from roombook.models import FIRST_TURN, NEVER, JobRun
from tests.accounts.outbox_helpers import write
from tests.faults.processes import children_of, find_free_port, wait_for
from tests.faults.service import ROOT, SECRET_KEY
from tests.test_startup import VALID

pytestmark = pytest.mark.django_db

INTERVAL = dt.timedelta(seconds=2)
# The runner with intervals and limits of seconds.
PROGRAM = f"""
import datetime as dt, os, sys, django
django.setup()
from roombook.jobs import JobRunner
JobRunner(
    dict.fromkeys(sys.argv[1:], dt.timedelta(seconds={INTERVAL.total_seconds()})),
    max_run_seconds=int(os.environ["MAX_RUN_SECONDS"]), stop_seconds=1,
).run()
"""


class Machine:
    """A machine with its own processes, and the database that all machines share."""

    def __init__(self, database, folder, stack):
        folder.mkdir()
        self.folder, self.stack, self.log = folder, stack, folder.with_suffix(".log")
        self.environment = VALID | {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "roombook.settings",
            "SECRET_KEY": SECRET_KEY,
            "DATABASE_URL": database.url,
            "EMAIL_URL": "consolemail://",
            "RUNTIME_DIRECTORY": str(folder),
            "MAX_RUN_SECONDS": "300",
        }

    def start(self, *words, **environment):
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                env=self.environment | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.stack.callback(end, process)
        return process

    def run(self, *commands, **environment):
        return self.start("-c", PROGRAM, *commands, **environment)

    def count_runs(self, command):
        return self.log.read_text().count(f'"roombook.jobs.{command}"')


def end(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def new_machine(store, tmp_path):
    database = store.new()
    with ExitStack() as stack, database.open():
        yield lambda name="a": Machine(database, tmp_path / name, stack)


def is_running(process):
    return Path(f"/proc/{process}").exists()


@pytest.fixture
def silent_server():
    """A mail server that accepts connections and never says anything."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"smtp://127.0.0.1:{server.getsockname()[1]}"


def test_job_that_crashes_is_reported_and_tried_again_and_the_others_go_on(new_machine):
    machine = new_machine()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_outboxmessage RENAME TO lost")

    machine.run("send_outbox", "expire_reservations")

    wait_for(lambda: len(list(machine.folder.iterdir())) > 1, "two failures of send_outbox")
    failures = [file.name.partition(".")[0] for file in machine.folder.iterdir()]
    assert set(failures) == {"send_outbox"}
    assert "send_outbox has crashed." in machine.log.read_text()
    wait_for(
        lambda: machine.count_runs("expire_reservations") > 1, "two runs of expire_reservations"
    )
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE lost RENAME TO accounts_outboxmessage")
    wait_for(JobRun.objects.filter(command="send_outbox", ended_at__gt=NEVER).exists, "a run")


def test_two_machines_run_each_turn_once_and_in_time(new_machine):
    machines = [new_machine("a"), new_machine("b")]
    begun_at = time.monotonic()
    for machine in machines:
        machine.run("erase_expired", "expire_reservations")

    def count():
        return sum(machine.count_runs("erase_expired") for machine in machines)

    wait_for(lambda: count() >= 4, "four runs")
    runs = count()
    # The first run is at the start, and then there is one at each turn.
    assert runs <= (time.monotonic() - begun_at) / INTERVAL.total_seconds() + 2
    due_at = JobRun.objects.get(command="erase_expired").due_at
    assert (due_at - FIRST_TURN) % INTERVAL == dt.timedelta(0)


@pytest.fixture
def hanging_email(silent_server):
    """An e-mail is due, and its server never answers: settings of a job that hangs."""
    write(subject="Booked: Boardroom", now=timezone.now())
    return {"EMAIL_URL": silent_server, "EMAIL_TIMEOUT": "300"}


def test_job_that_hangs_is_killed(new_machine, hanging_email):
    machine = new_machine()

    machine.run("send_outbox", MAX_RUN_SECONDS="3", **hanging_email)

    wait_for(lambda: "send_outbox was ended by SIGALRM." in machine.log.read_text(), "the limit")


def test_job_that_hangs_delays_no_other_and_sigterm_kills_it_and_gives_its_turn_back(
    new_machine, hanging_email
):
    machine = new_machine()
    runner = machine.run("send_outbox", "erase_expired", **hanging_email)
    wait_for(lambda: machine.count_runs("erase_expired") > 2, "three runs of erase_expired")
    # The other one is a run of erase_expired, if there is one.
    hanging = min(children_of(runner.pid))

    runner.terminate()

    assert runner.wait() == 0
    assert not is_running(hanging)
    assert "Killed, and due at the next start: send_outbox" in machine.log.read_text()
    assert JobRun.objects.get(command="send_outbox").due_at == NEVER


def test_run_jobs_that_lacks_migrations_does_not_start(new_machine):
    machine = new_machine()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'roombook'")

    assert machine.start("manage.py", "run_jobs").wait(timeout=60) == 1
    assert machine.log.read_text().startswith("Error: Run manage.py migrate: the database lacks 1")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_jobs_run_next_to_the_server_and_end_with_it(new_machine, end):
    machine = new_machine()
    write(subject="Booked: Boardroom", now=timezone.now())
    port = find_free_port()
    server = machine.start("manage.py", "serve", PORT=str(port), WEB_CONCURRENCY="1")
    wait_for(lambda: "roombook is ready" in machine.log.read_text(), "the server")
    wait_for(lambda: "Subject: Booked: Boardroom" in machine.log.read_text(), "the e-mail")
    wait_for(lambda: len(children_of(server.pid)) == 2, "run_jobs and a worker")
    processes = children_of(server.pid)
    os.kill(server.pid, end)
    server.wait(timeout=60)

    wait_for(lambda: not any(map(is_running, processes)), "their end")
