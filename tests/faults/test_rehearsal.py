"""deploy/rehearse-restore with pgBackRest, while the gateway knows more than the backup."""

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from centers.models import MeetingRoom
from tests.faults.database import Cluster, Database, programs
from tests.faults.service import ROOT, SECRET_KEY, Service
from tests.faults.size import LONG
from tests.faults.world import CARD, World
from tests.stripe_server import StripeServer

PROGRAMS = ["pgbackrest", "psql", "curl", "runuser"]
PASSWORD = "tests-only"
DEPLOY = ROOT / "deploy"

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="backs a cluster up and restores it: make faults"),
    pytest.mark.skipif(
        programs() is None or not all(map(shutil.which, PROGRAMS)),
        reason="pgBackRest is not installed",
    ),
]


class ArchivedCluster(Cluster):
    """A cluster with deploy/postgresql/archiving.conf and pgbackrest.conf."""

    def start(self) -> Database:
        self.initialize("--auth-local=trust", "--auth-host=scram-sha-256")
        text = (DEPLOY / "postgresql/pgbackrest.conf").read_text()
        text = text.replace("/var/lib/postgresql/15/main", str(self.data))
        text = text.replace("/var/lib/pgbackrest", f"{self.folder}/repository")
        text = text.replace("log-level-file=detail", f"log-level-file=off\nlock-path={self.folder}")
        text += f"pg1-port={self.port}\npg1-socket-path={self.folder}\npg1-user={self.owner}\n"
        configuration = self.folder / "pgbackrest.conf"
        configuration.write_text(text)
        os.environ["PGBACKREST_CONFIG"] = str(configuration)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write((DEPLOY / "postgresql/archiving.conf").read_text())
        self.start_server()
        self.pgbackrest("stanza-create")
        return self.create_service_role(PASSWORD)

    def pgbackrest(self, *command: str) -> None:
        subprocess.run(
            ["pgbackrest", "--stanza=roombook", *command],
            check=True,
            cwd="/",
            **self.user_options,
        )


@pytest.fixture
def archived(monkeypatch, django_db_blocker) -> Iterator[tuple[ArchivedCluster, Database]]:
    # Set again by `start`, and removed by monkeypatch.
    monkeypatch.setenv("PGBACKREST_CONFIG", "")
    folder = programs()
    assert folder is not None
    cluster = ArchivedCluster(folder)
    try:
        with django_db_blocker.unblock():
            database = cluster.start()
            database.migrate()
            yield cluster, database
    finally:
        cluster.remove()


def test_rehearsal_finds_what_only_the_gateway_knows_and_changes_nothing(archived, tmp_path):
    cluster, database = archived
    with StripeServer() as stripe:
        service = Service(
            database,
            tmp_path / "service",
            PAYMENT_GATEWAY="stripe",
            STRIPE_SECRET_KEY="sk_test_roombook",
            STRIPE_PUBLISHABLE_KEY="pk_test_roombook",
            STRIPE_WEBHOOK_SECRET="whsec_roombook",
            STRIPE_API_BASE=stripe.url,
            NO_PROXY="127.0.0.1",
        )
        try:
            with database.open():
                world = World(service)
                customer = world.customer()
                drafts = [world.draft(customer, world.room()).pk for _ in range(6)]
                # A picture that the backup of the files lacks.
                MeetingRoom.objects.filter(pk=world.room().pk).update(picture="rooms/lost.png")

            def book(pk: int) -> None:
                assert customer.client.checkout(pk, CARD).code == "Confirmed"

            book(drafts[0])
            book(drafts[1])
            cluster.pgbackrest("--type=full", "backup")
            # These are in the archive only.
            book(drafts[2])
            book(drafts[3])
            time.sleep(1.5)
            restore_time = dt.datetime.now(dt.UTC)
            time.sleep(1.5)
            # These are lost: two bookings, and a cancellation with its refund.
            book(drafts[4])
            book(drafts[5])
            assert customer.client.cancel(drafts[0]).status == 200
            # Files win over variables. Stripe's live key is refused together with STRIPE_API_BASE.
            files = {
                "DATABASE_URL": database.url,
                "STRIPE_SECRET_KEY": "sk_live_roombook",
            }
            lines = service.environment.copy()
            for name, value in files.items():
                (tmp_path / name).write_text(value)
                lines[f"{name}_FILE"] = str(tmp_path / name)
            settings = tmp_path / "settings"
            settings.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        finally:
            service.stop()
        # It waits until the archive has everything, as it has after archive_timeout.
        cluster.pgbackrest("check")
        before = [each["status"] for each in stripe.intents], len(stripe.refunds)

        earlier = run_rehearsal(settings, "--time", restore_time.isoformat(sep=" "))
        newest = run_rehearsal(settings, "--media", str(tmp_path))

        assert ([each["status"] for each in stripe.intents], len(stripe.refunds)) == before
    assert earlier.returncode == 0, earlier.stdout + earlier.stderr
    assert "payments: 4\n" in earlier.stdout
    assert "whose booking is not in the backup: 2\n" in earlier.stdout
    assert len(re.findall("refunded at the gateway", earlier.stdout)) == 1
    assert '"Reservations":[]' in earlier.stdout
    assert earlier.stdout.endswith("The backup can be restored.\n")
    # The archive has everything; the pictures are missing.
    assert newest.returncode == 1, newest.stdout + newest.stderr
    assert "payments: 6\n" in newest.stdout
    assert "whose booking is not in the backup: 0\n" in newest.stdout
    assert "missing: rooms/lost.png\n" in newest.stdout
    arguments = (tmp_path / "psql.arguments").read_text()
    assert "SELECT 1" in arguments
    assert PASSWORD not in arguments
    sys.stdout.write(earlier.stdout + newest.stdout)


def run_rehearsal(settings, *options):
    """Run it with a psql that writes down its arguments, which everybody on a machine can read."""
    folder = settings.parent / "programs"
    folder.mkdir(exist_ok=True)
    log = settings.parent / "psql.arguments"
    program = folder / "psql"
    program.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("psql")} "$@"\n')
    program.chmod(0o755)
    return subprocess.run(
        [DEPLOY / "rehearse-restore", *options],
        env=os.environ
        | {
            "ENV_FILE": str(settings),
            # Those of the tests would win over the file.
            "DEBUG": "false",
            "SECRET_KEY": SECRET_KEY,
            "REHEARSAL_STRIPE_KEY": "rk_test_readonly",
            "NO_PROXY": "127.0.0.1",
            "PATH": f"{folder}:{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
