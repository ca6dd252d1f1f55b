"""Wrong settings end a process with one line that names the setting, without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VALID = {
    "ENV_FILE": os.devnull,
    "DEBUG": "false",
    "SECRET_KEY": "sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs",
    "ALLOWED_HOSTS": "rooms.example.com",
    "TRUSTED_PROXIES": "1",
    "PAYMENT_GATEWAY": "sandbox",
    "DEFAULT_FROM_EMAIL": "Rooms <rooms@example.com>",
}
GUNICORN = ("-m", "gunicorn", "--check-config", "-c", "deploy/gunicorn.conf.py", "roombook.wsgi")


def run(*command, **variables):
    return subprocess.run(
        [sys.executable, *command],
        env={"PATH": os.environ["PATH"], **VALID, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize(
    ("command", "variable", "value", "message"),
    [
        (
            ("manage.py", "migrate"),
            *("DATABASE_URL", "mysql://u:hidden@h/db"),
            "DATABASE_URL: is not a postgres:// or sqlite:// address.",
        ),
        (
            ("-c", "import roombook.wsgi"),
            *("LOCALE", "xx_YY"),
            "LOCALE: 'xx_YY' is not a locale. Use a language and a country, such as en_US or"
            " de_DE. (roombook.E004)",
        ),
        (GUNICORN, "EMAIL_URL", "pop3://u:hidden@h", "EMAIL_URL: does not begin with one of: "),
        (GUNICORN, "WEB_THREADS", "x", "WEB_THREADS: 'x' is not a whole number of at least 1."),
    ],
)
def test_invalid_setting_ends_the_process_with_one_line(command, variable, value, message):
    ended = run(*command, **{variable: value})

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"Error: {message}")
    assert len(ended.stderr.splitlines()) == 1
    assert "hidden" not in ended.stderr


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("postgres://rooms:hidden@127.0.0.1:1/rooms", "rooms"),
        ("sqlite:////nowhere/rooms.sqlite3", "/nowhere/rooms.sqlite3"),
    ],
)
def test_unreachable_database_ends_the_command_with_one_line(url, database):
    ended = run("manage.py", "migrate", DATABASE_URL=url)

    assert ended.returncode != 0
    assert f"Error: DATABASE_URL: the database '{database}' cannot be opened" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "hidden" not in ended.stderr


def test_other_database_errors_keep_their_traceback(tmp_path):
    ended = run("manage.py", "erase_expired", DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3")

    assert "Traceback" in ended.stderr
    assert "no such table" in ended.stderr


# That it starts with all of them is seen by the tests in tests/faults, which start the service.
def test_service_without_all_migrations_is_refused_with_one_line(tmp_path):
    url = f"sqlite:///{tmp_path}/rooms.sqlite3"

    refused = run("-c", "import roombook.wsgi", DATABASE_URL=url)

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: Run manage.py migrate: the database lacks ")
    assert len(refused.stderr.splitlines()) == 1
