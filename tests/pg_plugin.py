"""Choose the tests' database before Django reads its settings; start a PostgreSQL if need be.

    TEST_DB=sqlite      a file (the default, unless DATABASE_URL is set)
    TEST_DB=postgres    DATABASE_URL if it is set, else a throw-away cluster of this machine's own
                        PostgreSQL programs, gone with the run

pytest loads this by `-p tests.pg_plugin` (see pyproject.toml): in conftest.py it would be too late,
as pytest-django has read the settings by then. Workers of pytest-xdist inherit the environment.
"""

import atexit
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

import pytest

START_SECONDS = 30


def find_programs() -> Path | None:
    """The folder with the newest PostgreSQL server of this machine."""
    on_path = shutil.which("initdb")
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0),
    )
    # A link on PATH may stand alone, away from its siblings: follow it.
    folders = [*reversed(versions), *([Path(on_path).resolve().parent] if on_path else [])]
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def start_cluster(bin_folder: Path) -> str:
    """Start an empty cluster on the loopback network and answer with its address."""
    # Not TMPDIR, which may be long: the path of a socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="roombook-postgres-", dir="/tmp"))
    who: dict[str, Any] = {}
    owner = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root; its package brings a user for it.
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        owner = account.pw_name
    data = folder / "data"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        where: dict[str, Any] = {"cwd": "/", "stdout": log, "stderr": log, **who}
        subprocess.run(
            [
                *(bin_folder / "initdb", "-D", data, "--auth=trust", "--encoding=UTF8"),
                *("--no-locale", "--no-sync"),
            ],
            check=True,
            **where,
        )
        server = subprocess.Popen(
            [
                *(bin_folder / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)),
                *("-k", folder, "-c", "max_connections=200"),
                # Nothing here must outlive a power cut.
                *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the tests first, and they end it
            **where,
        )
    atexit.register(stop_server, server)
    deadline = time.monotonic() + START_SECONDS
    while not accepts_connections(port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise pytest.UsageError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
        time.sleep(0.05)
    return f"postgres://{owner}@127.0.0.1:{port}/postgres"


def accepts_connections(port: int) -> bool:
    """Whether the server takes connections: its greeting comes only then."""
    ssl_request = bytes([0, 0, 0, 8, 4, 210, 22, 47])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(ssl_request)
            return connection.recv(1) == b"N"
    except OSError:
        return False


def stop_server(server: "subprocess.Popen[bytes]") -> None:
    """End the cluster; its files go next."""
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()


def choose_database() -> str:
    """Put DATABASE_URL into the environment and say in words what it is."""
    url = os.environ.get("DATABASE_URL", "")
    wanted = os.environ.get("TEST_DB") or ("postgres" if url.startswith("postgres") else "sqlite")
    if wanted == "sqlite":
        os.environ["DATABASE_URL"] = "sqlite:///db.sqlite3"
        return "SQLite (a file)"
    if wanted != "postgres":
        raise pytest.UsageError(f"TEST_DB is postgres or sqlite, not {wanted!r}")
    if url.startswith("postgres"):
        return "PostgreSQL of DATABASE_URL"
    if (bin_folder := find_programs()) is None:
        raise pytest.UsageError("TEST_DB=postgres: no DATABASE_URL, and no initdb on this machine")
    os.environ["DATABASE_URL"] = start_cluster(bin_folder)
    return f"PostgreSQL, a throw-away cluster of {bin_folder}"


def list_available_databases() -> list[str]:
    """The databases that this machine can test on."""
    given = os.environ.get("DATABASE_URL", "").startswith("postgres")
    return [*(["postgres"] if given or find_programs() else []), "sqlite"]


if __name__ == "__main__":
    print(*list_available_databases())  # for the Makefile
else:
    # Nobody's .env decides how tests end; error pages, HTTPS and logs are as in development.
    os.environ |= {"ENV_FILE": os.devnull, "DEBUG": "true", "SECRET_KEY": "for-tests-only"}
    DATABASE = choose_database()


def pytest_report_header() -> str:
    """Say at the top of a run what it runs on."""
    return f"database: {DATABASE}"


@pytest.hookimpl(optionalhook=True, tryfirst=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: some tests wait for a browser, a service or a lock."""
    return (os.cpu_count() or 1) + 1
