"""A new Debian machine with systemd, set up and operated by the commands of the documentation.

Every command of the pages is run as it is printed, or named below with the reason why not.
"""

import re
from collections.abc import Iterator

import pytest

from tests.faults import machine as machines
from tests.faults.machine import Machine, read_commands
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
COUNT = len(list((ROOT / "deploy/systemd").glob("*.timer")))
TIMERS = "$(cd deploy/systemd && ls *.timer)"
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
        if command.startswith(printed) or printed[0].isdigit():
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
    assert f"{COUNT} timers listed" in printed["systemctl list-timers 'roombook*'"]


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


def test_install_again_with_a_new_timer_does_not_restart_the_service(machine):
    unit = "roombook-job@send_webhooks.timer"
    machine.run(f"systemctl disable --now {unit}; rm /etc/systemd/system/{unit}")
    main_process = machine.run("systemctl show roombook --property MainPID").stdout

    machine.run("deploy/install.sh rooms.example.com stripe")

    machine.run(f"systemctl is-enabled {unit} && systemctl is-active {unit}")
    assert machine.run("systemctl show roombook --property MainPID").stdout == main_process


def test_commands_of_the_runbook_run(machine):
    machine.run(f"{SIGN_IN} | grep --quiet Error")

    printed = type_commands(machine, RUNBOOK)

    [sign_ins] = [out for command, out in printed.items() if '"path": "/api/sign-in"' in command]
    assert int(sign_ins) >= 1


def test_commands_of_the_upgrade_run(machine):
    main_process = machine.run("systemctl show roombook --property MainPID").stdout
    unit = "roombook-job@send_webhooks.timer"
    machine.run(f"systemctl disable --now {unit}; rm /etc/systemd/system/{unit}")

    type_commands(machine, UPGRADE)

    machine.run(f"systemctl is-active {unit}")
    assert machine.run("systemctl show roombook --property MainPID").stdout != main_process
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
            machine.run(f"{ASK}/healthz && systemctl is-active {TIMERS}")
            machine.run("systemctl stop roombook 'roombook-job@*.timer'")
        type_command(machine, command)

    assert machine.run(administrators).stdout.strip() == "1"
    machine.run(f"systemctl start roombook {TIMERS}")
    machine.run(f"{ASK}/healthz")


def test_timers_run_their_commands(machine):
    # A command that ran when the database was stopped for the restore has failed.
    machine.run("systemctl reset-failed 'roombook*'")
    for timer in machine.run("cd deploy/systemd && ls *.timer").stdout.split():
        unit = timer.replace(".timer", ".service")
        if "send_outbox" not in timer and "reconcile_payments" not in timer:
            machine.run(f"systemctl start {unit}")  # It is not due within minutes.
        wait_for(lambda unit=unit: has_succeeded(machine, unit), f"a run of {unit}")
    assert (
        "0 loaded units listed" in machine.run("systemctl list-units --failed 'roombook*'").stdout
    )


def has_succeeded(machine: Machine, unit: str) -> bool:
    wanted = "--property Result,ExecMainExitTimestampMonotonic,ExecMainStatus"
    state = machine.run(f"systemctl show {unit} {wanted}").stdout
    return "ExecMainExitTimestampMonotonic=0\n" not in state and "Result=success" in state
