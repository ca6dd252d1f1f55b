"""Two machines behind nginx get a new version with another schema while customers book."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.load import Load
from tests.faults.processes import find_free_port, is_listening, wait_for
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.test_upgrade import NEW, copy_repository, install_version, reload
from tests.test_nginx import CONFIGURATION, PROGRAM

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="two machines under load: make faults"),
    pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed"),
]

CLIENTS = 6
WARM_UP_SECONDS = 4.0
# Longer than the test.
MAX_SECONDS = 300.0
DRAIN_SECONDS = 5.0
MAIN = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/roombook.conf;
}}
"""
# The old code does not know the column: the database gives it its value.
MIGRATION = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("reservations", "{latest}")]
    operations = [
        migrations.AddField("reservation", "source", {field})
    ]
"""
FIELD = 'models.CharField(max_length=20, default="new", db_default="old")'
KNOWN_FIELD = "    start = models.DateTimeField()\n"


class Balancer:
    """deploy/nginx/roombook.conf without TLS and without limits, in front of several machines."""

    def __init__(self, folder: Path, *ports: int) -> None:
        self.folder = folder
        self.port, http, https = (find_free_port() for _ in range(3))
        text = CONFIGURATION.read_text()
        for configured, used in (
            (r"listen 443 ssl;", f"listen 127.0.0.1:{self.port};"),
            (r"listen 443", f"listen 127.0.0.1:{https}"),
            (r"listen 80", f"listen 127.0.0.1:{http}"),
            (r".*listen \[::\].*", ""),
            (r" *ssl_(certificate|protocols|session).*", ""),
            (r"rate=\d+r/s", "rate=9999r/s"),
            (r"server_name rooms\.example\.com", "server_name 127.0.0.1"),
            (r"/srv/roombook", str(folder)),
            # The test speaks plain HTTP with the service.
            (r"X-Forwarded-Proto https", "X-Forwarded-Proto http"),
        ):
            text, count = re.subn(configured, used, text)
            assert count, configured
        self._text = text
        self._write(*(f"127.0.0.1:{port}" for port in ports))
        user = "user root;" if os.getuid() == 0 else ""
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
        error_log = str(folder / "error.log")
        command = [str(PROGRAM), "-e", error_log, "-c", str(folder / "nginx.conf")]
        subprocess.run([*command, "-t"], check=True, capture_output=True)
        self.process = subprocess.Popen(command)
        wait_for(lambda: is_listening(self.port), "nginx")

    def _write(self, *servers: str) -> None:
        lines = " ".join(f"server {each};" for each in servers)
        text, count = re.subn("server web:8000;", lines, self._text)
        assert count == 1
        (self.folder / "roombook.conf").write_text(text)

    def use(self, *servers: str) -> None:
        """Change the list of machines, as `nginx -s reload` does."""
        self._write(*servers)
        self.process.send_signal(signal.SIGHUP)
        time.sleep(1.0)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Machine(Service):
    """A machine with an installation of its own."""

    def __init__(self, database, folder: Path) -> None:
        self.app = folder / "app"
        if not self.app.exists():
            copy_repository(self.app)
        self.pidfile = folder / "gunicorn.pid"
        super().__init__(
            database,
            folder / f"service-{time.monotonic_ns()}",
            root=self.app,
            PIDFILE=str(self.pidfile),
            FAULTS_LEASE_SECONDS=str(LEASE),
        )
        self.address = f"127.0.0.1:{self.port}"

    def install_new_version(self) -> None:
        install_version(self.app, NEW)
        migrations = self.app / "reservations/migrations"
        latest = max(file.stem for file in migrations.glob("0*.py"))
        (migrations / "9999_source.py").write_text(MIGRATION.format(latest=latest, field=FIELD))
        model = self.app / "reservations/models/reservation.py"
        text = model.read_text()
        assert text.count(KNOWN_FIELD) == 1
        model.write_text(text.replace(KNOWN_FIELD, f"    source = {FIELD}\n{KNOWN_FIELD}"))

    def migrate(self) -> None:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"],
            cwd=self.app,
            env=self.environment,
            check=True,
        )

    def shut_down(self) -> None:
        """Stop as `systemctl stop` does: running requests are finished."""
        self.master.terminate()
        self.master.wait(60)

    def stop(self) -> None:
        # The master that a reload started is no child of this process.
        with suppress(OSError, ValueError):
            os.kill(int(self.pidfile.read_text()), signal.SIGTERM)
        super().stop()


@pytest.fixture
def machines(store, django_db_blocker, tmp_path) -> Iterator[list[Machine]]:
    with django_db_blocker.unblock():
        database = store.new()
        running = [Machine(database, tmp_path / name) for name in ("web1", "web2")]
        yield running
        for each in running:
            each.stop()


def test_rolling_upgrade_with_a_change_of_the_schema_fails_no_request(machines, tmp_path):
    web1, web2 = machines
    balancer = Balancer(tmp_path, web1.port, web2.port)
    try:
        load = Load(web1, CLIENTS, MAX_SECONDS, port=balancer.port)
        time.sleep(WARM_UP_SECONDS)
        for each in machines:
            each.install_new_version()
        web1.migrate()
        # Old code, new schema.
        time.sleep(WARM_UP_SECONDS)

        # The first machine is taken out and restarted.
        balancer.use(f"{web1.address} down", web2.address)
        time.sleep(DRAIN_SECONDS)
        web1.shut_down()
        machines[0] = web1 = Machine(web1.database, web1.app.parent)
        balancer.use(web1.address, web2.address)
        # Old and new code.
        time.sleep(WARM_UP_SECONDS)

        # The second one is reloaded in place.
        reloaded = reload(web2, web2.app)
        assert reloaded.returncode == 0, reloaded.stderr
        time.sleep(WARM_UP_SECONDS)
        assert load.end() == []
        assert {answer.status for answer in load.wait()} <= {200, 409}

        # The control: these clients notice a machine that stops without being taken out.
        control = Load(web1, CLIENTS, MAX_SECONDS, port=balancer.port)
        time.sleep(WARM_UP_SECONDS)
        web1.stop()
        time.sleep(1.0)
        control.stop()
        assert not {answer.status for answer in control.wait()} <= {200, 409}
    finally:
        balancer.stop()
