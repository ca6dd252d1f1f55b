"""How hard the tests of faults try: every number of them in one place."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    # Who wants the same thing at once, and how often it is tried.
    contenders: int = 32
    rounds: int = 1
    # Seconds in which each rival is to be answered; told in the table, enforced by the long form.
    max_seconds: float = 2.0
    # Rounds of two who race for one reservation.
    races: int = 4
    # Seconds of a storm, its clients, and the pause between two killed workers.
    storm: float = 6.0
    clients: int = 8
    kill_every: float = 0.5
    # Seconds between two restarts of the database.
    restart_every: float = 2.5
    # Seconds that the gateway hangs, and checkouts that hang with it.
    hang: float = 3.0
    hung: int = 8
    # Seconds of the hunt for deadlocks.
    hunt: float = 3.0


LONG = os.environ.get("FAULTS") == "long"
SIZE = (
    Size(rounds=5, races=40, storm=20.0, restart_every=5.0, hang=10.0, hunt=10.0)
    if LONG
    else Size()
)

WORKERS = 4
# Seconds for which a request owns its payment, where tests wait for the end of that.
LEASE = 1
# Seconds after which a client gives a request up, and a whole errand.
REQUEST_SECONDS = 40.0
ERRAND_SECONDS = 60.0
