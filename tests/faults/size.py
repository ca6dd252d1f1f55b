"""The sizes of the fault tests: durations, clients and rounds of the short and the long form."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    # Parallel requests for the same thing, and how often they are repeated.
    contenders: int = 16
    rounds: int = 1
    # Seconds in which each of them must be answered. Only the long form requires it.
    max_seconds: float = 2.0
    # Seconds of a storm, its clients, and the seconds between two killed workers.
    storm: float = 6.0
    clients: int = 8
    kill_every: float = 0.5
    # Seconds between two restarts of the database.
    restart_every: float = 2.5
    # Seconds for which the gateway hangs, and the checkouts that wait for it.
    hang: float = 3.0
    hung: int = 8


LONG = os.environ.get("FAULTS") == "long"
SIZE = Size(contenders=32, rounds=5, storm=20.0, restart_every=5.0, hang=10.0) if LONG else Size()

WORKERS = 4
# The lease of a payment in seconds, where tests wait for its end.
LEASE = 1
# Seconds after which a client gives up one request, and all its retries.
REQUEST_SECONDS = 40.0
RETRY_SECONDS = 60.0
