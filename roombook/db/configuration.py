"""Completes an entry of the setting DATABASES that was read from a URL."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def complete_database(
    database: Mapping[str, Any],
    *,
    base_dir: Path,
    is_pooled: bool,
    session_limits: Mapping[str, int],
) -> dict[str, Any]:
    """Return the entry with its options, and with our backend for PostgreSQL.

    `session_limits` are PostgreSQL's limits of a session in seconds. A pooler (`is_pooled`) does
    not pass them on. The name of an SQLite file is relative to `base_dir`.
    """
    # No transaction around a whole request: none may be open during a call to a payment gateway.
    completed = {**database, "ATOMIC_REQUESTS": False}
    if not database["ENGINE"].endswith("postgresql"):
        return completed | {
            "NAME": base_dir / database["NAME"],
            # Take the write lock when a transaction begins: SQLite cannot wait for it later.
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": (
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"
                ),
            },
        }
    options = {
        # Notice within seconds that a host is gone; the system's default is two hours.
        "connect_timeout": 2,
        "tcp_user_timeout": 5000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    } | database.get("OPTIONS", {})
    if not is_pooled:
        limits = [f"-c {name}={seconds}s" for name, seconds in session_limits.items()]
        # Compiling a query takes longer than running ours.
        options.setdefault("options", " ".join([*limits, "-c jit=off"]))
    return {
        # Connecting takes longer than most requests: reuse the connection, and check it before use.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        **completed,
        # Django's backend, extended by prepared statements.
        "ENGINE": "roombook.db.postgresql",
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        "OPTIONS": options,
    }
