"""An upgrade of the running service, as docs/upgrade.md describes it, while clients call."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import pytest

from tests.faults.processes import wait_for
from tests.faults.service import ROOT, Service
from tests.faults.size import LONG, WORKERS
from tests.faults.world import CARD, World
from tests.gateway_faults import FaultKind

PACKAGES = ["roombook", "accounts", "centers", "payments", "reservations", "deploy", "tests"]
EMPTY_MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("accounts", "{latest}")]
"""
CLIENTS = 6
PAUSE_SECONDS = 0.02 if LONG else 0.06
HEALTH = "roombook/health.py"
slow = pytest.mark.skipif(not LONG, reason="one refused version is enough: make faults")
OLD, NEW = '{"status": "ok"}', '{"status": "ok, the new version"}'


def copy_repository(folder):
    folder.mkdir(parents=True)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "manage.py", folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the repository, whose code the tests may change."""
    folder = tmp_path_factory.mktemp("installed") / "app"
    copy_repository(folder)
    return folder


@pytest.fixture(scope="module")
def service(store, installed):
    """The running service; each test goes on where the one before has left it."""
    folder = installed.parent
    pidfile = folder / "gunicorn.pid"
    running = Service(store.new(), folder / "service", root=installed, PIDFILE=str(pidfile))
    running.pidfile = pidfile
    yield running
    # The master that a reload started is no child of this process.
    with suppress(OSError, ValueError):
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
    running.stop()


def install_version(folder, text):
    """Change the code: /healthz then answers differently."""
    file = folder / HEALTH
    file.write_text(file.read_text().replace('{"status": "ok"}', text))


def reload(service, folder, **environment):
    return subprocess.run(
        [folder / "deploy/reload.sh", service.pidfile],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


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
def refused_version(service, installed, file, code, **environment):
    """Reload with other code in that file, which has to fail. Gives what it says."""
    path = installed / file
    before = path.read_text() if path.exists() else None
    path.write_text(code)
    with clients(service.port) as answers:
        reloaded = reload(service, installed, **environment)
        assert reloaded.returncode == 1
        assert int(service.pidfile.read_text()) == service.master.pid
        if before is None:
            path.unlink()
        else:
            path.write_text(before)
        yield reloaded.stderr
    assert set(answers) == {f"200 {OLD}"}


@slow
def test_reload_of_a_version_that_does_not_start_keeps_the_old_one(service, installed):
    broken = (installed / HEALTH).read_text() + "broken code ("
    with refused_version(service, installed, HEALTH, broken, RELOAD_LOAD_SECONDS="2") as said:
        assert "the old one still runs" in said


@slow
def test_reload_of_a_version_that_loads_too_slowly_ends_it(service, installed):
    slow = "import time\n\ntime.sleep(3)\n" + (installed / HEALTH).read_text()
    with refused_version(service, installed, HEALTH, slow, RELOAD_LOAD_SECONDS="2"):
        # Nothing of it is left that could begin to serve, or be in the way of the next attempt.
        time.sleep(5)


def test_reload_without_migrating_first_keeps_the_old_version(service, installed):
    folder = "accounts/migrations"
    latest = max(file.stem for file in (installed / folder).glob("0*.py"))
    new = EMPTY_MIGRATION.format(latest=latest)
    # It ends as soon as it has noticed, however long loading takes.
    with refused_version(service, installed, f"{folder}/9999_new.py", new):
        assert "the database lacks 1 migrations (accounts.9999_new)" in service.log.read_text()


def test_reload_under_load_serves_the_new_code_without_a_failed_request(service, installed):
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
        install_version(installed, NEW)
        # The workers have loaded the old code, and SIGHUP does not change that.
        workers = set(service.workers())
        service.master.send_signal(signal.SIGHUP)
        wait_for(lambda: len({*service.workers()} - workers) == WORKERS, "new workers")
        answers_before = answers.total()
        wait_for(lambda: answers.total() > answers_before + CLIENTS, "their answers")
        assert set(answers) == {f"200 {OLD}"}

        reloaded = reload(service, installed)
        assert reloaded.returncode == 0, reloaded.stderr
        assert int(service.pidfile.read_text()) != service.master.pid
        answers_before = answers.copy()
        wait_for(lambda: answers.total() > answers_before.total() + CLIENTS, "further answers")
    checkout.join()

    assert set(answers) == {f"200 {OLD}", f"200 {NEW}"}
    # Nothing of the old version is left.
    assert answers[f"200 {OLD}"] - answers_before[f"200 {OLD}"] == 0
    assert [(answer.status, answer.code) for answer in paid] == [(200, "Confirmed")]


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
    pidfile = tmp_path / "gunicorn.pid"
    service = Service(
        store.new(),
        tmp_path / "service",
        PIDFILE=str(pidfile),
        NOTIFY_SOCKET=str(tmp_path / "notify"),
        WEB_CONCURRENCY="1",
    )
    service.pidfile = pidfile

    def receive():
        return [notified.recv(1000).decode() for _ in range(2)]

    try:
        assert receive()[1] == f"MAINPID={service.master.pid}"
        assert reload(service, ROOT).returncode == 0
        new = int(pidfile.read_text())
        assert receive() == ["READY=1\nSTATUS=Gunicorn arbiter booted", f"MAINPID={new}"]
        os.kill(new, signal.SIGTERM)
    finally:
        service.stop()
        notified.close()
