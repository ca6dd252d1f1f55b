"""A new Debian machine with systemd, set up and operated by the commands of the documentation.

Every command of the pages is run as it is printed, or named below with the reason why not.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults import machine as machines
from tests.faults.machine import APP, Machine, read_commands
from tests.faults.processes import wait_for
from tests.faults.service import ROOT
from tests.faults.size import LONG

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="sets up whole machines: make faults"),
    pytest.mark.skipif(not machines.is_possible(), reason="this machine cannot boot another one"),
]

README, RUNBOOK, UPGRADE, BACKUP = PAGES = [
    "deploy/README.md",
    "docs/runbook.md",
    "docs/upgrade.md",
    "docs/backup.md",
]
NO_NETWORK = "the machine has no network"
NO_CONTAINERS = "the machine has no containers"
NO_CRON = "cron is not installed"
EVENTS = "the names of Stripe's events are not commands"
REHEARSAL = "tests/faults/test_rehearsal.py runs it"
# The beginnings of commands that are not run here, and why.
NOT_RUN = {
    "install -d /srv/roombook && git clone": NO_NETWORK,
    "cp deploy/env.example deploy/.env": NO_CONTAINERS,
    "docker compose": NO_CONTAINERS,
    "curl https://rooms.example.com/healthz": NO_CONTAINERS,
    "cd /srv/roombook/app && git pull && make env": NO_NETWORK,
    "payment_intent.": EVENTS,
    "charge.": EVENTS,
    "refund.": EVENTS,
    "setup_intent.": EVENTS,
    "checkout.session.": EVENTS,
    "apt-get install pgbackrest": NO_NETWORK,
    "17 2 * * * postgres": NO_CRON,
    "rsync --archive": NO_NETWORK,
    "REHEARSAL_STRIPE_KEY=": REHEARSAL,
    "runuser -u postgres -- pgbackrest --stanza=roombook --delta --type=time": REHEARSAL,
}
# What is typed instead: answers to questions, and values that depend on the day.
TYPED = {
    "deploy/manage createsuperuser": (
        "DJANGO_SUPERUSER_PASSWORD=sK7vQ2xW9mB4 DJANGO_SUPERUSER_EMAIL=ada@example.com"
        " deploy/manage createsuperuser --no-input --first_name Ada --last_name Lovelace"
    ),
    "systemctl restart roombook": "systemctl restart roombook; sleep 1",
    "2027-03-01.dump": "$(date +%F).dump",
    "2027-03-01T02:00": "$(date -u -d '1 hour ago' +%FT%H:%M)",
}
UNITS = "roombook-jobs.service roombook-job-failed.path"
ASK = (
    "curl --silent --fail --insecure --retry 30 --retry-delay 1 --retry-all-errors"
    " --resolve rooms.example.com:443:127.0.0.1 https://rooms.example.com"
)
SIGN_IN = ASK.replace("--fail", "") + (
    "/api/sign-in --header 'Content-Type: application/json'"
    """ --data '{"EmailAddress": "ada@example.com", "Password": "wrong"}'"""
)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    started = Machine("rooms")
    yield started
    started.remove()


def is_run(command: str) -> bool:
    return not command.startswith(tuple(NOT_RUN))


def type_command(machine: Machine, command: str) -> str:
    """Run a command of a page. Its output."""
    for printed, typed in TYPED.items():
        if command == printed or printed[0].isdigit():
            command = command.replace(printed, typed)
    statuses = {0}
    if "| grep" in command:
        statuses.add(1)  # Nothing was found.
    if command.startswith("systemctl status"):
        statuses.add(3)  # Not every unit is active.
    done = machine.run(command, statuses=statuses)
    assert "command not found" not in done.stderr
    return done.stdout


def type_commands(machine: Machine, page: str) -> dict[str, str]:
    return {each: type_command(machine, each) for each in read_commands(page) if is_run(each)}


def count_prefix(text: str, prefix: str) -> int:
    return sum(line.startswith(prefix) for line in text.splitlines())


def test_every_reason_belongs_to_a_command():
    commands = [command for page in PAGES for command in read_commands(page)]

    assert [each for each in NOT_RUN if not any(c.startswith(each) for c in commands)] == []
    assert sum(map(is_run, commands)) > 50


def test_new_machine_serves_after_the_commands_of_the_readme(machine):
    names = "rooms.example.com stripe"
    missing = machine.run(f"deploy/install.sh --check {names}", statuses={1}).stdout
    assert count_prefix(missing, "missing: ") == len(missing.splitlines()) >= 15

    # With Stripe, it ends with the settings that nobody else can know.
    begun = machine.run(f"deploy/install.sh {names}", statuses={1})
    assert "STRIPE_SECRET_KEY" in begun.stderr
    machine.run(
        "sed -i -e 's/^#STRIPE_SECRET_KEY=.*/STRIPE_SECRET_KEY=sk_test_1/'"
        " -e 's/^#STRIPE_PUBLISHABLE_KEY=.*/STRIPE_PUBLISHABLE_KEY=pk_test_1/'"
        " -e 's/^#STRIPE_WEBHOOK_SECRET=.*/STRIPE_WEBHOOK_SECRET=whsec_1/'"
        " -e 's/^#DEFAULT_FROM_EMAIL=.*/DEFAULT_FROM_EMAIL=rooms@example.com/' /etc/roombook.env"
    )
    done = machine.run(f"deploy/install.sh {names}").stdout
    assert count_prefix(begun.stdout + done, "== ") >= 12
    assert machine.run(f"{ASK}/healthz").stdout == '{"status": "ok"}'
    assert machine.run(f"deploy/install.sh {names}").stdout.splitlines() == [
        "Done. Create the first administrator: /srv/roombook/app/deploy/manage createsuperuser"
    ]

    printed = type_commands(machine, README)
    assert "Active: active (running)" in printed["systemctl status roombook-jobs"]


def test_install_again_keeps_edited_files_and_reads_settings_as_the_service_does(machine):
    """The address of the database is quoted, and then in a file of its own."""
    before = machine.run("cat /etc/roombook.env").stdout
    machine.run(
        "chown roombook:roombook /etc/roombook.env; chmod 600 /etc/roombook.env;"
        " sed -i 's/^DATABASE_URL=\\(.*\\)/DATABASE_URL=\"\\1\"/' /etc/roombook.env;"
        " echo '# Edited.' | tee -a /etc/nginx/conf.d/roombook.conf"
        "  /etc/postgresql/*/main/pg_hba.conf;"
        " rm /etc/systemd/system/roombook.service;"
        " find roombook/static -type f | head -1 | xargs touch"
    )
    main_process = machine.run("systemctl show roombook --property MainPID").stdout

    updated = machine.run("deploy/install.sh rooms.example.com stripe").stdout

    # The settings' owner, the static files, the unit, and the service that loads them.
    assert count_prefix(updated, "== ") == 3
    differing = set(re.findall(r"^differs: .*/(.*)$", updated, re.M))
    assert differing == {"roombook.conf", "pg_hba.conf"}
    assert machine.run("systemctl show roombook --property MainPID").stdout != main_process

    machine.run(
        "sed -n 's/^DATABASE_URL=\"\\(.*\\)\"/\\1/p' /etc/roombook.env >/etc/roombook-database;"
        " chown root:roombook /etc/roombook-database; chmod 640 /etc/roombook-database;"
        " sed -i 's|^DATABASE_URL=.*|DATABASE_URL_FILE=/etc/roombook-database|' /etc/roombook.env"
    )
    machine.run("deploy/install.sh --check rooms.example.com stripe", statuses={1})
    loaded = machine.run("deploy/install.sh rooms.example.com stripe").stdout
    assert re.findall(r"^== (.*)$", loaded, re.M) == [
        "a service that has loaded these settings and this version"
    ]
    machine.run("deploy/install.sh --check rooms.example.com stripe")
    assert "DATABASE_URL=postgres://" in before


def test_install_again_with_a_new_unit_does_not_restart_the_service(machine):
    machine.run(f"systemctl disable --now {UNITS}; rm /etc/systemd/system/roombook-job*.*[eh]")
    main_process = machine.run("systemctl show roombook --property MainPID").stdout

    machine.run("deploy/install.sh rooms.example.com stripe")

    for unit in UNITS.split():
        machine.run(f"systemctl is-enabled {unit} && systemctl is-active {unit}")
    assert machine.run("systemctl show roombook --property MainPID").stdout == main_process


def test_commands_of_the_runbook_run(machine):
    machine.run(f"{SIGN_IN} | grep --quiet Error")

    printed = type_commands(machine, RUNBOOK)

    [sign_ins] = [out for command, out in printed.items() if '"path": "/api/sign-in"' in command]
    assert int(sign_ins) >= 1


def test_commands_of_the_upgrade_run(machine):
    properties = "systemctl show roombook roombook-jobs --property MainPID"
    before = set(machine.run(properties).stdout.split())

    type_commands(machine, UPGRADE)

    assert len(before) == 2
    assert not before & set(machine.run(properties).stdout.split())
    machine.run("systemctl is-active roombook-jobs")
    machine.run("curl --fail --header 'Host: rooms.example.com' http://127.0.0.1:8000/readyz")


def test_commands_of_the_backup_run(machine):
    # Stripe cannot be reached from here.
    machine.run("sed -i 's/^PAYMENT_GATEWAY=.*/PAYMENT_GATEWAY=sandbox/' /etc/roombook.env")
    administrators = (
        "deploy/manage shell --no-imports --command"
        " 'from accounts.models import User; print(User.objects.count())'"
    )
    assert machine.run(administrators).stdout.strip() == "1"
    for command in filter(is_run, read_commands(BACKUP)):
        if "dropdb" in command:
            # After the restore, before that of a dump.
            machine.run(f"{ASK}/healthz && systemctl is-active {UNITS}")
            machine.run("systemctl stop roombook roombook-jobs")
        type_command(machine, command)

    assert machine.run(administrators).stdout.strip() == "1"
    machine.run("systemctl start roombook roombook-jobs")
    machine.run(f"{ASK}/healthz")


def test_scheduled_commands_run_and_root_gets_the_log_of_one_that_fails(machine):
    """Without a mail server: this program writes e-mails to a file."""
    machine.run(
        "printf '#!/bin/sh\\ncat >>/var/tmp/mails\\n' >/usr/sbin/sendmail;"
        " chmod 755 /usr/sbin/sendmail; systemctl restart roombook-jobs"
    )
    log = "journalctl -u roombook-jobs --since -2min"
    for job in ("reconcile_payments", "send_outbox", "send_webhooks"):
        wait_for(lambda job=job: job in machine.run(log).stdout, f"a run of {job}")

    shell = "deploy/manage dbshell -- -c"
    machine.run(f"{shell} 'ALTER TABLE reservations_webhookdelivery RENAME TO lost'")
    mails = "cat /var/tmp/mails || true"
    wait_for(lambda: "send_webhooks failed" in machine.run(mails).stdout, "an e-mail to root")
    machine.run(f"{shell} 'ALTER TABLE lost RENAME TO reservations_webhookdelivery'")

    mail = machine.run(mails).stdout
    assert "To: root\nSubject: roombook: send_webhooks failed on rooms\n\n" in mail
    assert "send_webhooks has crashed." in mail
    assert "roombook.jobs.send_outbox" not in mail
    assert machine.run("ls /run/roombook-jobs").stdout == ""


# --- A new Debian from its mirror: packages, clone and environment included -----------------------

# It needs the network, and minutes for what it loads.
MIRROR_PROGRAMS = ["debootstrap", "slirp4netns", "git"]
REPOSITORY = "/root/roombook.git"
NAMES = "rooms.example.com sandbox"
# For what install.sh loads: an idle machine needs two minutes.
LOAD_SECONDS = 3600
# How this machine reaches the mirrors: further certificates, the configuration of pip, names.
CERTIFICATES = "/usr/local/share/ca-certificates"
CONFIGURATION = ["/etc/pip.conf", "/etc/resolv.conf"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Iterator[Path]:
    """The files of a new Debian, of the release of this machine, with git and the repository."""
    folder = tmp_path_factory.mktemp("debian") / "files"
    release = Path("/etc/os-release").read_text()
    [suite] = [
        line.partition("=")[2]
        for line in release.splitlines()
        if line.startswith("VERSION_CODENAME=")
    ]
    run("debootstrap", "--include=git,ca-certificates", suite, str(folder))
    repository = f"{folder}{REPOSITORY}"
    run("git", "init", "--bare", "--initial-branch=main", repository)
    run("git", "-C", repository, "fetch", str(ROOT), "HEAD:main")
    shutil.copytree(CERTIFICATES, f"{folder}{CERTIFICATES}", dirs_exist_ok=True)
    for name in filter(os.path.exists, CONFIGURATION):
        shutil.copy(name, f"{folder}{name}")
    run("chroot", str(folder), "update-ca-certificates")
    yield folder
    shutil.rmtree(folder)


def run(*command: str) -> None:
    done = subprocess.run(
        command, env={"PATH": machines.SEARCH_PATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.fixture
def new_machine(files) -> Iterator[Machine]:
    with ExitStack() as stack:
        started = Machine("rooms", files=files)
        stack.callback(started.remove)
        # Connections from the machine are made by this process; nothing reaches the machine.
        network = subprocess.Popen(
            ["slirp4netns", "--configure", "--disable-host-loopback", str(started.pid), "tap0"],
            env={"PATH": machines.SEARCH_PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(network.wait)
        stack.callback(network.kill)
        yield started


@pytest.mark.skipif(
    not all(shutil.which(each, path=machines.SEARCH_PATH) for each in MIRROR_PROGRAMS),
    reason=f"this machine lacks one of: {', '.join(MIRROR_PROGRAMS)}",
)
def test_new_debian_serves_after_the_commands_of_the_readme(new_machine):
    machine = new_machine
    commands = read_commands(README)
    first = next(n for n, each in enumerate(commands) if "git clone" in each)
    clone, enter, install = commands[first : first + 3]
    assert enter == f"cd {APP}"
    wait_for(
        lambda: not machine.run("apt-get update", statuses={0, 100}, folder="/").returncode,
        "Debian's mirror",
    )
    machine.run(clone.replace("<URL of the repository>", f"file://{REPOSITORY}"), folder="/root")
    installed = machine.run(install.replace(" stripe", " sandbox"), seconds=LOAD_SECONDS)

    assert installed.stdout.count("== ") >= 12
    assert "Debian packages" in installed.stdout
    assert "Python environment" in installed.stdout
    machine.run(f"deploy/install.sh --check {NAMES}")
    ask = "curl --fail --insecure --resolve rooms.example.com:443:127.0.0.1"
    assert machine.run(f"{ask} https://rooms.example.com/healthz").stdout == '{"status": "ok"}'
    runs = "journalctl -u roombook-jobs | grep jobs.send_outbox"
    wait_for(lambda: machine.run(runs, statuses={0, 1}).stdout != "", "a scheduled command")
    # A new version, as docs/upgrade.md says: nothing is new here.
    [pull] = [each for each in read_commands("docs/upgrade.md") if "git pull" in each]
    machine.run(pull)
