"""Chooses the database of the tests before Django reads its settings, and starts it if necessary.

    TEST_DB=sqlite      a file (the default, unless DATABASE_URL is set)
    TEST_DB=postgres    DATABASE_URL if it is set, otherwise a temporary cluster, started with the
                        PostgreSQL programs of this machine

pytest loads this plugin with `-p tests.pg_plugin` (see pyproject.toml). conftest.py would be too
late: pytest-django has read the settings by then. pytest-xdist's workers inherit the environment.
"""

import atexit
import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg2
import pytest

START_SECONDS = 30
GIVEN = "PostgreSQL of DATABASE_URL"


def find_programs() -> Path | None:
    """The folder with the newest PostgreSQL programs of this machine."""
    on_path = shutil.which("initdb")
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0),
    )
    # `initdb` on PATH may be a link in a folder without the other programs: resolve it.
    folders = [*reversed(versions), *([Path(on_path).resolve().parent] if on_path else [])]
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def give_to_postgres(folder: Path) -> tuple[str, dict[str, Any]]:
    """Let the folder belong to the user of PostgreSQL, which refuses to run as root.

    Returns the name of the user, and the options with which subprocess runs programs as this user.
    """
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name, {}
    account = pwd.getpwnam("postgres")  # PostgreSQL's package creates it.
    os.chown(folder, account.pw_uid, account.pw_gid)
    options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return account.pw_name, options


def start_cluster(bin_folder: Path) -> str:
    """Start an empty cluster on the loopback address and return its URL."""
    # Not in TMPDIR, which may be long: the path of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="roombook-postgres-", dir="/tmp"))
    owner, user_options = give_to_postgres(folder)
    data = folder / "data"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "log").open("w") as log:
        options: dict[str, Any] = {"cwd": "/", "stdout": log, "stderr": log, **user_options}
        subprocess.run(
            [
                *(bin_folder / "initdb", "-D", data, "--auth=trust", "--encoding=UTF8"),
                *("--no-locale", "--no-sync"),
            ],
            check=True,
            **options,
        )
        server = subprocess.Popen(
            [
                *(bin_folder / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)),
                *("-k", folder, "-c", "max_connections=200"),
                # Test data need not survive a power failure.
                *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"),
                # It would change the statistics, and so the plans of queries, at any time.
                *("-c", "autovacuum=off"),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the tests first; they end the server.
            **options,
        )
    atexit.register(stop_server, server)
    deadline = time.monotonic() + START_SECONDS
    while not accepts_connections(port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise pytest.UsageError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
        time.sleep(0.05)
    return f"postgres://{owner}@127.0.0.1:{port}/postgres"


def accepts_connections(port: int) -> bool:
    """Whether the server answers a request for SSL, which it does only when it is ready."""
    ssl_request = bytes([0, 0, 0, 8, 4, 210, 22, 47])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(ssl_request)
            return connection.recv(1) == b"N"
    except OSError:
        return False


def stop_server(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()


def make_run_folder() -> Path:
    """Create the folder that the processes of this run share (see DatabaseStore)."""
    if "TEST_RUN_FOLDER" not in os.environ:
        os.environ["TEST_RUN_FOLDER"] = tempfile.mkdtemp(prefix="roombook-tests-")
        atexit.register(shutil.rmtree, os.environ["TEST_RUN_FOLDER"], ignore_errors=True)
    return Path(os.environ["TEST_RUN_FOLDER"])


def choose_database() -> str:
    """Set DATABASE_URL in the environment and return a description of the database."""
    url = os.environ.get("DATABASE_URL", "")
    chosen = os.environ.get("TEST_DB") or ("postgres" if url.startswith("postgres") else "sqlite")
    if chosen == "sqlite":
        os.environ["DATABASE_URL"] = "sqlite:///db.sqlite3"
        return "SQLite (a file)"
    if chosen != "postgres":
        raise pytest.UsageError(f"TEST_DB is postgres or sqlite, not {chosen!r}")
    if url.startswith("postgres"):
        return GIVEN
    if (bin_folder := find_programs()) is None:
        raise pytest.UsageError("TEST_DB=postgres: no DATABASE_URL, and no initdb on this machine")
    os.environ["DATABASE_URL"] = start_cluster(bin_folder)
    return f"PostgreSQL, a temporary cluster of {bin_folder}"


def list_available_databases() -> list[str]:
    """The databases on which this machine can run the tests."""
    has_url = os.environ.get("DATABASE_URL", "").startswith("postgres")
    return [*(["postgres"] if has_url or find_programs() else []), "sqlite"]


if __name__ == "__main__":
    print(*list_available_databases())  # for the Makefile
else:
    # Ignore the developer's .env; error pages, HTTPS and logs are as in development.
    os.environ |= {"ENV_FILE": os.devnull, "DEBUG": "true", "SECRET_KEY": "for-tests-only"}
    RUN_FOLDER = make_run_folder()
    DATABASE = choose_database()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Drop the template of DatabaseStore from a server that remains."""
    is_main_process = not hasattr(config, "workerinput")
    if is_main_process and DATABASE == GIVEN and (RUN_FOLDER / "is-migrated").exists():
        with contextlib.closing(psycopg2.connect(os.environ["DATABASE_URL"])) as connection:
            connection.autocommit = True
            template = RUN_FOLDER.name.replace("-", "_")
            connection.cursor().execute(f"DROP DATABASE IF EXISTS {template}")


def pytest_report_header() -> str:
    return f"database: {DATABASE}"


@pytest.hookimpl(optionalhook=True, tryfirst=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """As many as there are processors. The tests on the other database use the waits of these."""
    return os.cpu_count() or 1
