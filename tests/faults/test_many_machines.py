"""docs/many-machines.md, typed as it is printed: five Debian machines in a network of their own.

Three have PostgreSQL, Patroni, etcd and PgBouncer. Two have the service and its scheduled commands,
and nginx of the first one shares the requests between both.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.examples import read_examples
from tests.faults import machine as machines
from tests.faults.customers import COUNT, STOP
from tests.faults.machine import Machine, Network, read_commands
from tests.faults.patroni import NEWER_PATRONI
from tests.faults.processes import wait_for
from tests.faults.service import ROOT
from tests.faults.size import LONG

PROGRAMS = ["patroni", "etcd", "etcdctl", "pgbouncer"]
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="sets up five machines: make faults"),
    pytest.mark.skipif(not machines.is_possible(), reason="this machine cannot boot another one"),
    pytest.mark.skipif(
        not all(shutil.which(each, path=machines.SEARCH_PATH) for each in PROGRAMS),
        reason="this machine lacks a program of the database servers",
    ),
]

DATABASES, WEBS = ["db1", "db2", "db3"], ["web1", "web2"]
PASSWORD = "tests-only"
PAGE = "docs/many-machines.md"
INSTALL = "deploy/install.sh rooms.example.com sandbox"
# The page says how patronictl gets the password.
PATRONICTL = (
    "set -a; . /etc/patroni_env.conf; set +a; patronictl --config-file /etc/patroni/config.yml"
)
HOSTS = "db1,db2,db3"
SEARCHES = 30
DATABASE = f"postgres://roombook:{PASSWORD}@{HOSTS}:{{}}/roombook?target_session_attrs={{}}"


@pytest.fixture(scope="module")
def network() -> Iterator[dict[str, Machine]]:
    with ExitStack() as stack:
        made = Network(*DATABASES, *WEBS)
        stack.callback(made.remove)
        started = {}
        for name in made.addresses:
            started[name] = Machine(name, made)
            stack.callback(started[name].remove)
        yield started


def on_all(
    network: dict[str, Machine], names: list[str], run: Callable[[Machine], object]
) -> list[object]:
    """Do the same on several machines at the same time."""
    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(run, (network[name] for name in names)))


def find_command(beginning: str) -> str:
    [command] = {each for each in read_commands(PAGE) if each.startswith(beginning)}
    return command


def set_up_database_server(machine: Machine) -> None:
    for beginning in (
        "systemctl disable --now postgresql",
        "install -D -o postgres -m 600 deploy/patroni/node.env",
        "install -D -m 644 deploy/patroni/patroni.yml",
        "install -D -m 755 deploy/patroni/reset-pgbouncer",
        "install -D -m 644 deploy/postgresql/roombook.conf",
        "install -D -m 644 deploy/patroni/etcd.env",
    ):
        machine.run(find_command(beginning))
    # What the page says to change. There is no watchdog and no repository of pgBackRest.
    machine.run(
        f"sed -i -e 's/CHANGE-ME/{PASSWORD}/'"
        f" -e 's/^\\(PATRONI_[A-Z_]*\\(NAME\\|CONNECT_ADDRESS\\)\\)=db1/\\1={machine.name}/'"
        " /etc/patroni_env.conf;"
        f" sed -i -e 's/^ETCD_NAME=db1/ETCD_NAME={machine.name}/'"
        f" -e '/ADVERTISE/s/db1/{machine.name}/' /etc/default/etcd;"
        " sed -i -e 's/mode: required/mode: \"off\"/' -e 's|archive_command: .*|archive_command:"
        " /bin/true|' /etc/patroni/config.yml;"
        " sed -i 's/shared_buffers = 2GB/shared_buffers = 64MB/' /etc/patroni/roombook.conf"
    )
    if NEWER_PATRONI.exists():
        machine.run(find_command("install -D -m 644 deploy/patroni/version.conf"))
        machine.run(find_command("ln -sf /opt/patroni/bin/patronictl"))
    machine.run(find_command("systemctl enable etcd"))


def read_roles(machine: Machine) -> dict[str, str]:
    """The servers that run, by their roles."""
    listed = machine.run(f"{PATRONICTL} list", statuses={0, 1}).stdout
    pattern = r"\| (db\d) +\| \S+ +\| (\w+(?: \w+)?) +\| (?:running|streaming)"
    return {role: name for name, role in re.findall(pattern, listed)}


def find_primary(machine: Machine) -> str | None:
    """The primary, if all three servers run and one standby is synchronous."""
    roles = read_roles(machine)
    return roles["Leader"] if set(roles) == {"Leader", "Sync Standby", "Replica"} else None


def set_up_pooler(machine: Machine, secret: str) -> None:
    machine.run(
        "install -D -o postgres -m 640 deploy/pgbouncer/pgbouncer.ini /etc/pgbouncer/pgbouncer.ini;"
        f' echo \'"roombook" "{secret}"\' >/etc/pgbouncer/userlist.txt;'
        " chown postgres /etc/pgbouncer/userlist.txt; chmod 600 /etc/pgbouncer/userlist.txt;"
        " systemctl enable pgbouncer && systemctl restart pgbouncer"
    )


def write_settings(machine: Machine) -> None:
    """The same file on both machines; no file system is shared, and the walk needs no pictures."""
    values = {
        "SECRET_KEY": "sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs",
        "ALLOWED_HOSTS": "rooms.example.com",
        "DATABASE_URL": DATABASE.format(6432, "read-write"),
        "PGBOUNCER": "true",
        "DATABASE_REPLICA_URL": DATABASE.format(5432, "prefer-standby"),
        "TRUSTED_PROXIES": "1",
        "MACHINES": "2",
        "MEDIA_ROOT": "/srv/roombook/media",
        "MEDIA_IS_SHARED": "true",
        "PAYMENT_GATEWAY": "sandbox",
        "DEFAULT_FROM_EMAIL": "rooms@example.com",
        "BIND": "0.0.0.0:8000",
        # Eight customers book all the time, and what a failover leaves behind is resolved soon.
        "CREATES_PER_HOUR": "0",
        "GATEWAY_TIMEOUT": "2",
        "PAYMENT_LEASE_SECONDS": "5",
        "METRICS_BIND": "127.0.0.1:9464",
    }
    (machine.root / "etc/roombook.env").write_text(
        "".join(f"{name}={value}\n" for name, value in values.items())
    )


def book(network: dict[str, Machine], days: int) -> None:
    """The booking of README.md through nginx, some days from now; its search is repeated."""
    walk = (ROOT / "README.md").read_text().split("<!-- walk -->")[1].split("<!-- /walk -->")[0]
    commands = [each.commands for each in read_examples(walk)]
    # The first search of each worker only begins to watch the replica.
    [search] = [each for each in commands if "/api/locations/search" in each]
    script = "set -eu\n" + "".join(commands)
    script = script.replace(search, f"for n in $(seq {SEARCHES}); do\n{search}done\n")
    # After a switchover, connections to the former primary cost a 503 each.
    curl = "curl -sS --retry 30 --insecure --resolve rooms.example.com:443:127.0.0.1"
    script = script.replace("http://127.0.0.1:8000", "https://rooms.example.com")
    script = script.replace("curl -sS", curl).replace("timedelta(30)", f"timedelta({days})")
    assert '"Status":"Confirmed"' in network["web1"].run(script).stdout


def count_log_lines(machine: Machine, field: str, value: str) -> int:
    return machine.run("journalctl -u roombook").stdout.count(f'"{field}": {value}')


def switch_over(machine: Machine) -> str:
    """Make the synchronous standby the primary; return the name of the former one."""
    roles = read_roles(machine)
    old, standby = roles["Leader"], roles["Sync Standby"]
    machine.run(f"{PATRONICTL} switchover --leader {old} --candidate {standby} --force roombook")
    wait_for(lambda: find_primary(machine) not in {None, old}, "another primary")
    return old


def is_offered_as_primary(machine: Machine, name: str) -> bool:
    """Whether PgBouncer on this server says that it accepts changes."""
    uri = f"postgres://roombook:{PASSWORD}@{name}:6432/roombook?target_session_attrs=read-write"
    return machine.run(f"psql '{uri}' -Atc 'SELECT 1'", statuses={0, 2}).returncode == 0


def set_up(network: dict[str, Machine]) -> None:
    """Type the commands of the page, up to two servers of the service that share the requests."""
    on_all(network, DATABASES, set_up_database_server)
    db1, web1 = network["db1"], network["web1"]
    wait_for(
        lambda: (
            not db1.run(find_command("etcdctl --endpoints"), statuses=set(range(256))).returncode
        ),
        "three members of etcd",
    )
    for name in DATABASES:
        network[name].run(find_command("systemctl enable --now patroni"), statuses={0, 1})
    wait_for(lambda: find_primary(db1) is not None, "three servers")
    name = find_primary(db1)
    assert name
    primary = network[name]
    create_role = find_command("ROOMBOOK_PASSWORD=").replace("...", PASSWORD)
    primary.run(create_role)
    secret = primary.run(
        "runuser -u postgres -- psql -Atqc"
        " \"SELECT rolpassword FROM pg_authid WHERE rolname = 'roombook'\""
    ).stdout.strip()
    on_all(network, DATABASES, lambda machine: set_up_pooler(machine, secret))

    on_all(network, WEBS, write_settings)
    # The tables are created past PgBouncer, as the page says.
    first = web1.run(INSTALL, statuses={0, 1})
    migrate = find_command("PGBOUNCER=false").replace("...", PASSWORD)
    web1.run(migrate)
    on_all(network, WEBS, lambda machine: machine.run(INSTALL))
    assert "a PostgreSQL cluster" not in first.stdout
    servers = "".join(f"    server {name}:8000;\\n" for name in WEBS)
    web1.run(
        f"sed -i 's/^ *server 127.0.0.1:8000;/{servers}/' /etc/nginx/conf.d/roombook.conf"
        " && nginx -t && nginx -s reload"
    )
    web1.run("deploy/manage seed_demo --small --force")


def test_walk_through_the_page_books_rooms_before_and_after_a_switchover(network):
    set_up(network)
    db1, web1 = network["db1"], network["web1"]
    for days in (30, 37):
        book(network, days)
    former = switch_over(db1)
    wait_for(lambda: not is_offered_as_primary(web1, former), "a PgBouncer that was reset")
    for days in (44, 51):
        book(network, days)

    for name in WEBS:
        assert count_log_lines(network[name], "path", '"/api/locations/search"') > 0
        assert count_log_lines(network[name], "status", "500") == 0
    metrics = web1.run("curl --silent http://127.0.0.1:9464/metrics").stdout
    assert 'roombook_replica_reads_total{source="replica"}' in metrics
    for name in WEBS:
        for job in ("send_outbox", "reconcile_payments", "expire_reservations", "verify_integrity"):
            network[name].run(f"deploy/manage {job}")


# --- Customers who book in the meantime ----------------------------------------------------------

PLAIN_PORT = 8080
# nginx of web1 without TLS, which the customers of tests.faults.customers do not speak.
PLAIN_SITE = f"""
server {{
    listen 127.0.0.1:{PLAIN_PORT};
    location / {{
        proxy_pass http://roombook;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host rooms.example.com;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto https;
    }}
}}
"""
BOOK = (
    "deploy/manage shell --no-imports --command"
    f" 'from tests.faults import customers; customers.run({PLAIN_PORT})'"
)
# So many further bookings show that the service works again.
FURTHER_BOOKINGS = 20


def book_during(web1: Machine, fault: Callable[[], object]) -> list[str]:
    """Let customers book through nginx and PgBouncer before, during and after a fault.

    Returns what was lost, or is inconsistent.
    """
    (web1.root / "etc/nginx/conf.d/plain.conf").write_text(PLAIN_SITE)
    web1.run("nginx -t && nginx -s reload")
    count_file, stop_file = (web1.root / str(path)[1:] for path in (COUNT, STOP))

    for file in (count_file, stop_file):
        file.unlink(missing_ok=True)

    def has_more_than(bookings: int) -> bool:
        assert not customers.done(), customers.result()
        return count_file.exists() and int(count_file.read_text() or 0) > bookings

    with ThreadPoolExecutor(1) as pool:
        customers = pool.submit(web1.run, BOOK)
        try:
            wait_for(lambda: has_more_than(FURTHER_BOOKINGS), "bookings")
            fault()
            before = int(count_file.read_text())
            wait_for(lambda: has_more_than(before + FURTHER_BOOKINGS), "further bookings")
        finally:
            stop_file.touch()
        # Before it is what the service logs.
        *_, seen, result = customers.result().stdout.splitlines()
    pause, problems = json.loads(result)
    sys.stdout.write(f"{seen}, longest pause {pause:.1f} s\n")
    return problems


def test_switchover_behind_pgbouncer_loses_no_booking(network):
    web1, db1 = network["web1"], network["db1"]

    assert book_during(web1, lambda: switch_over(db1)) == []


def test_control_without_a_reset_clients_stay_with_the_former_primary(network):
    db1 = network["db1"]
    on_all(
        network, DATABASES, lambda each: each.run("ln -sf /bin/true /etc/patroni/reset-pgbouncer")
    )
    former = switch_over(db1)
    assert is_offered_as_primary(network["web1"], former)


def test_primary_without_power_behind_pgbouncer_loses_no_booking(network):
    """The last test: the machine is gone, with its PgBouncer and its member of etcd."""
    install = find_command("install -D -m 755 deploy/patroni/reset-pgbouncer")
    on_all(
        network, DATABASES, lambda machine: machine.run(f"{install}; systemctl restart pgbouncer")
    )
    old = find_primary(network["db1"])
    [survivor, _] = [each for name, each in network.items() if name in DATABASES and name != old]

    def fail() -> None:
        network[old].remove()
        wait_for(lambda: read_roles(survivor).get("Leader") not in {None, old}, "another primary")

    assert book_during(network["web1"], fail) == []
