"""An upgrade of the running service, as docs/upgrade.md describes it, while clients call."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.load import Load
from tests.faults.processes import wait_for
from tests.faults.service import ROOT, Service
from tests.faults.size import LEASE, LONG, WORKERS
from tests.faults.world import CARD, World
from tests.gateway_faults import FaultKind

PACKAGES = ["roombook", "accounts", "centers", "payments", "reservations", "deploy", "tests"]
MIGRATION = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("{app}", "{latest}")]
    operations = [{operation}]
"""
CLIENTS = 6
PAUSE_SECONDS = 0.02 if LONG else 0.06
HEALTH = "roombook/health.py"
WARM_UP_SECONDS = 4.0
# Longer than the test.
MAX_SECONDS = 300.0
# The old code does not know the column: the database gives it its value.
FIELD = 'models.CharField(max_length=20, default="new", db_default="old")'
KNOWN_FIELD = "    start = models.DateTimeField()\n"
slow = pytest.mark.skipif(not LONG, reason="one refused version is enough: make faults")
OLD, NEW = '{"status": "ok"}', '{"status": "ok, the new version"}'


class Installation(Service):
    """The service with a copy of the repository, whose code the tests may change."""

    def __init__(self, database, folder: Path, **environment: str) -> None:
        self.app, self.pidfile = folder / "app", folder / "gunicorn.pid"
        if not self.app.exists():
            for name in PACKAGES:
                shutil.copytree(ROOT / name, self.app / name)
            shutil.copy(ROOT / "manage.py", self.app)
        super().__init__(
            database,
            folder / f"service-{time.monotonic_ns()}",
            root=self.app,
            PIDFILE=str(self.pidfile),
            **environment,
        )

    def stop(self) -> None:
        # The master that a reload started is no child of this process.
        with suppress(OSError, ValueError):
            os.kill(int(self.pidfile.read_text()), signal.SIGTERM)
        super().stop()

    def install_new_version(self) -> None:
        """Change the code: /healthz then answers differently."""
        file = self.app / HEALTH
        file.write_text(file.read_text().replace(OLD, NEW))

    def write_migration(self, app: str, operation: str = "") -> None:
        folder = self.app / app / "migrations"
        latest = max(file.stem for file in folder.glob("0*.py"))
        text = MIGRATION.format(app=app, latest=latest, operation=operation)
        (folder / "9999_new.py").write_text(text)

    def reload(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.app / "deploy/reload.sh", self.pidfile],
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="module")
def service(store, tmp_path_factory):
    """The running service; each test goes on where the one before has left it."""
    running = Installation(store.new(), tmp_path_factory.mktemp("installed"))
    yield running
    running.stop()


@contextmanager
def clients(port):
    """Clients that call /healthz all the time. Gives how often each answer came so far."""
    answers = Counter()
    is_over = threading.Event()

    def call():
        while not is_over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                connection.request("GET", "/healthz")
                response = connection.getresponse()
                answers[f"{response.status} {response.read().decode()}"] += 1
            except (OSError, http.client.HTTPException) as error:
                answers[f"failed: {type(error).__name__}"] += 1
            finally:
                connection.close()
            time.sleep(PAUSE_SECONDS)

    threads = [threading.Thread(target=call) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@contextmanager
def refused_version(service, **environment):
    """Reload what the test has installed, which has to fail. Gives what it says."""
    with clients(service.port) as answers:
        reloaded = service.reload(**environment)
        assert reloaded.returncode == 1
        assert int(service.pidfile.read_text()) == service.master.pid
        yield reloaded.stderr
    assert set(answers) == {f"200 {OLD}"}


@slow
@pytest.mark.parametrize("code", ["broken code (", "import time; time.sleep(3)"])
def test_reload_of_a_version_that_does_not_start_in_time_keeps_the_old_one(service, code):
    file = service.app / HEALTH
    before = file.read_text()
    file.write_text(f"{before}\n{code}\n")
    with refused_version(service, RELOAD_LOAD_SECONDS="2") as said:
        file.write_text(before)
        assert "the old one still runs" in said
        # Nothing of it is left that could begin to serve, or be in the way of the next attempt.
        time.sleep(5)


def test_reload_without_migrating_first_keeps_the_old_version(service):
    service.write_migration("accounts")
    # It ends as soon as it has noticed, however long loading takes.
    with refused_version(service):
        (service.app / "accounts/migrations/9999_new.py").unlink()
        assert "the database lacks 1 migrations (accounts.9999_new)" in service.log.read_text()


def test_reload_under_load_serves_the_new_code_without_a_failed_request(service):
    with service.database.open():
        world = World(service)
        customer = world.customer()
        draft = world.draft(customer, world.room())
    # A checkout that takes longer than the new version needs to start.
    service.add_gateway_fault("authorize", FaultKind.SLOW, seconds=8.0)
    paid = []
    checkout = threading.Thread(
        target=lambda: paid.append(customer.client.checkout(draft.pk, CARD))
    )
    with clients(service.port) as answers:
        checkout.start()
        wait_for(lambda: bool(answers), "an answer")
        service.install_new_version()
        # The workers have loaded the old code, and SIGHUP does not change that.
        workers = set(service.workers())
        service.master.send_signal(signal.SIGHUP)
        wait_for(lambda: len({*service.workers()} - workers) == WORKERS, "new workers")
        answers_before = answers.total()
        wait_for(lambda: answers.total() > answers_before + CLIENTS, "their answers")
        assert set(answers) == {f"200 {OLD}"}

        reloaded = service.reload()
        assert reloaded.returncode == 0, reloaded.stderr
        assert int(service.pidfile.read_text()) != service.master.pid
        answers_before = answers.copy()
        wait_for(lambda: answers.total() > answers_before.total() + CLIENTS, "further answers")
    checkout.join()

    assert set(answers) == {f"200 {OLD}", f"200 {NEW}"}
    # Nothing of the old version is left.
    assert answers[f"200 {OLD}"] - answers_before[f"200 {OLD}"] == 0
    assert [(answer.status, answer.code) for answer in paid] == [(200, "Confirmed")]


@slow
@pytest.mark.postgres
def test_upgrade_with_a_change_of_the_schema_loses_no_request(store, django_db_blocker, tmp_path):
    lease = {"FAULTS_LEASE_SECONDS": str(LEASE)}
    with django_db_blocker.unblock():
        service = Installation(store.new(), tmp_path, **lease)
        try:
            load = Load(service, CLIENTS, MAX_SECONDS)
            install_new_schema(service)
            migrate = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"]
            subprocess.run(migrate, cwd=service.app, env=service.environment, check=True)
            # Old code, new schema.
            time.sleep(WARM_UP_SECONDS)

            reloaded = service.reload()
            assert reloaded.returncode == 0, reloaded.stderr
            time.sleep(WARM_UP_SECONDS)

            assert load.end() == []
            assert {answer.status for answer in load.wait()} <= {200, 409}
        finally:
            service.stop()


def install_new_schema(service):
    service.install_new_version()
    service.write_migration(
        "reservations", f'migrations.AddField("reservation", "source", {FIELD})'
    )
    model = service.app / "reservations/models/reservation.py"
    text = model.read_text()
    assert text.count(KNOWN_FIELD) == 1
    model.write_text(text.replace(KNOWN_FIELD, f"    source = {FIELD}\n{KNOWN_FIELD}"))


def test_restart_under_load_fails_requests(service):
    """The control: these clients do notice an interruption."""
    with clients(service.port) as answers:
        wait_for(lambda: bool(answers), "an answer")
        os.kill(int(service.pidfile.read_text()), signal.SIGTERM)
        wait_for(lambda: any(each.startswith("failed") for each in answers), "a failure")


def test_new_master_tells_systemd_that_it_is_the_main_process(store, tmp_path):
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.bind(str(tmp_path / "notify"))
    notified.settimeout(60)
    service = Installation(
        store.new(), tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify"), WEB_CONCURRENCY="1"
    )

    def receive():
        return [notified.recv(1000).decode() for _ in range(2)]

    try:
        assert receive()[1] == f"MAINPID={service.master.pid}"
        assert service.reload().returncode == 0
        new = int(service.pidfile.read_text())
        assert receive() == ["READY=1\nSTATUS=Gunicorn arbiter booted", f"MAINPID={new}"]
    finally:
        service.stop()
        notified.close()
