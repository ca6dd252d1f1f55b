"""The files in deploy/ that are not code."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command, get_commands
from packaging.utils import canonicalize_name

from roombook.jobs import JOB_INTERVALS
from tests.locks import read_lock
from tests.test_startup import run

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
SYSTEMD = DEPLOY / "systemd"
README = (DEPLOY / "README.md").read_text()
COMPOSE_FILES = ["compose.yaml", "compose.ha.yaml"]
OPERATIONS = [
    f"docs/{name}.md" for name in ("many-machines", "upgrade", "backup", "scaling", "reliability")
]
# Files that the pages say to create.
CREATED = {"deploy/.env", "deploy/tls"}
SCRIPTS = [
    *sorted(DEPLOY.glob("*.sh")),
    DEPLOY / "manage",
    DEPLOY / "rehearse-restore",
    DEPLOY / "patroni/reset-pgbouncer",
    ROOT / ".ci/run",
]


def test_shell_scripts_have_no_findings():
    program = Path(sys.executable).with_name("shellcheck")

    checked = subprocess.run([program, *SCRIPTS], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("page", ["deploy/README.md", *OPERATIONS])
def test_commands_of_the_pages_for_operators_exist(page):
    text = (ROOT / page).read_text()
    commands = set(re.findall(r"^ +(?:\w+=\S* )*deploy/manage (\w+)", text, re.M))
    files = set(re.findall(r"(?<![\w/])(?:deploy|tests)/[\w./-]*\w", text))

    assert commands <= set(get_commands())
    assert [name for name in files if not (ROOT / name).exists() and name not in CREATED] == []


def test_rehearsal_sets_existing_settings():
    """It must not use what the running service uses, nor send e-mails or webhooks."""
    settings = re.findall(r"^#?([A-Z_]+)=", (DEPLOY / "env.example").read_text(), re.M)
    script = (DEPLOY / "rehearse-restore").read_text()
    overridden = re.search(r"^override DATABASE_URL((?:.*\\\n)*.*)", script, re.M)[1]
    names = re.findall(r"(\w+)=", overridden)

    assert set(names) <= set(settings)
    assert {"EMAIL_URL", "PGBOUNCER", "DATABASE_REPLICA_URL", "SENTRY_DSN"} <= set(names)
    assert "SEND_WEBHOOKS=false" in overridden


@pytest.mark.parametrize(
    ("line", "environment"),
    [
        ("PAYMENT_GATEWAY=sandbox", {"PAYMENT_GATEWAY": "stripe"}),
        ("PAYMENT_GATEWAY_FILE={gateway}", {}),
    ],
)
def test_rehearsal_with_a_key_of_stripe_that_can_write_is_refused(tmp_path, line, environment):
    settings, gateway = tmp_path / "settings", tmp_path / "gateway"
    gateway.write_text("stripe\n")
    settings.write_text(f"STRIPE_SECRET_KEY=sk_live_1\n{line.format(gateway=gateway)}\n")

    refused = subprocess.run(
        [DEPLOY / "rehearse-restore"],
        env=os.environ
        | {"ENV_FILE": str(settings), "REHEARSAL_STRIPE_KEY": "sk_live_1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Set REHEARSAL_STRIPE_KEY to a restricted key")


def read_compose(name):
    return yaml.safe_load((DEPLOY / name).read_text())


def test_readme_has_the_commands_and_intervals_of_the_jobs():
    words = {"every minute": "0:01:00", "every 5 minutes": "0:05:00", "every hour": "1:00:00"}
    in_readme = dict(re.findall(r"^\| `(\w+)` \| (every [\w ]+|daily) \|", README, re.M))

    assert {name: words.get(when, "1 day, 0:00:00") for name, when in in_readme.items()} == {
        name: str(interval) for name, interval in JOB_INTERVALS.items()
    }


def test_systemd_and_containers_run_the_jobs():
    unit = (SYSTEMD / "roombook-jobs.service").read_text()
    commands = [read_compose(name)["services"]["jobs"]["command"] for name in COMPOSE_FILES]

    assert commands == [["python", "manage.py", "run_jobs"]] * 2
    assert re.search(r"^ExecStart=.*/python manage\.py run_jobs$", unit, re.M)


@pytest.mark.django_db
def test_scheduled_commands_delete_expired_sessions():
    for seconds in (-1, 3600):
        session = SessionStore()
        session.set_expiry(seconds)
        session.save()

    call_command("erase_expired")

    assert [each.session_key for each in Session.objects.all()] == [session.session_key]


# --- systemd --------------------------------------------------------------------------------------

ANALYZE = shutil.which("systemd-analyze")


def analyze(*arguments):
    return subprocess.run(
        [ANALYZE, *arguments], capture_output=True, text=True, check=False, cwd=SYSTEMD
    )


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", ["roombook.service", "roombook-jobs.service"])
def test_unit_is_hardened(unit):
    # The exposure is at most 2.0 of 10; that of a unit without hardening is above 9.
    analyzed = analyze("security", "--offline=true", "--threshold=20", unit)

    assert analyzed.returncode == 0, analyzed.stdout


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_units_have_no_errors_but_the_missing_programs():
    units = [each.name for each in sorted(SYSTEMD.iterdir()) if each.is_file()]

    verified = analyze("verify", *units)

    lines = verified.stderr.splitlines()
    assert [line for line in lines if "is not executable: No such file" not in line] == []


# --- Containers -----------------------------------------------------------------------------------


def test_docker_files_have_no_findings():
    program = Path(sys.executable).with_name("hadolint")
    files = [DEPLOY / "Dockerfile", DEPLOY / "patroni/Dockerfile"]

    checked = subprocess.run(
        [program, "--failure-threshold=warning", *files],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_every_container_has_no_rights_and_a_read_only_file_system(name):
    for container in read_compose(name)["services"].values():
        assert container["cap_drop"] == ["ALL"]
        assert container["security_opt"] == ["no-new-privileges:true"]
        assert container["read_only"] is True


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_containers_set_existing_settings_and_mount_existing_files(name):
    settings = set(re.findall(r"^#?([A-Z_]+)=", (DEPLOY / "env.example").read_text(), re.M))
    compose = read_compose(name)
    for container in compose["services"].values():
        if container.get("env_file") == ".env":
            assert set(container["environment"]) <= settings
        for mounted in container.get("volumes", []):
            source = mounted.split(":")[0]
            is_secret = source == "./tls"
            assert is_secret or source in compose["volumes"] or (DEPLOY / source).is_file(), source
        for other in container.get("depends_on", {}):
            assert other in compose["services"]


def test_service_runs_without_tools_for_tests():
    """`make run`, `make env` and the image install requirements.txt only."""
    needed = {canonicalize_name(each.name) for each in read_lock("requirements.txt")}
    missing = {
        module
        for module, names in metadata.packages_distributions().items()
        if not needed & {canonicalize_name(name) for name in names}
    }
    assert {"pytest", "hypothesis", "mypy", "playwright"} <= missing

    # The service starts while the database is away.
    url = "postgres://rooms:hidden@127.0.0.1:1/rooms"
    loaded = run("-c", BLOCK_AND_LOAD.format(missing=missing), DATABASE_URL=url)

    assert loaded.returncode == 0, loaded.stderr


BLOCK_AND_LOAD = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
import roombook.wsgi
from django.core.management import get_commands, load_command_class
for name, app in get_commands().items():
    load_command_class(app, name)
"""


def test_install_script_passes_no_secret_as_an_argument(tmp_path):
    """The shell prints each command before it runs it."""
    script = (DEPLOY / "install.sh").read_text()
    function = re.search(r"^write_settings\(\) \{.*?^\}$", script, re.M | re.S)[0]
    values = f"settings={tmp_path}/env host=rooms.example.com gateway=sandbox home=/srv/roombook"

    done = subprocess.run(
        ["sh", "-euxc", f"{values}\n{function}\nwrite_settings"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    written = dict(re.findall("^([A-Z_]+)=(.*)$", (tmp_path / "env").read_text(), re.M))
    password = re.search("//roombook:(.*)@", written["DATABASE_URL"])[1]
    commands = [line for line in done.stderr.splitlines() if not line.startswith("+ password=")]
    assert any(line.startswith("+ sed ") for line in commands)
    for secret in (password, written["SECRET_KEY"]):
        assert len(secret) > 50
        assert secret not in "\n".join(commands)
    assert written["ALLOWED_HOSTS"] == "rooms.example.com"
    assert written["PUBLIC_URL"] == "https://rooms.example.com"
