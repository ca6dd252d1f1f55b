"""Customers on a machine of the service, who book through the proxy at a port of that machine.

    deploy/manage shell --no-imports --command 'from tests.faults import customers; ...'

They book until the file STOP exists. The file COUNT says how many bookings were confirmed so far.
At the end, what they saw is printed as JSON, and whether the database agrees.
"""

import json
import sys
import time
from pathlib import Path

from django.conf import settings
from django.db import connections
from factory.django import DjangoModelFactory

from tests.faults.database import Database
from tests.faults.load import Load
from tests.faults.service import Service

STOP, COUNT = Path("/tmp/customers-stop"), Path("/tmp/customers-count")
CLIENTS = 8
# Longer than any failover.
MAX_SECONDS = 240.0
POLL_SECONDS = 0.1


class InstalledService(Service):
    """The service that systemd runs."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.database = Database("")


def run(port: int) -> None:
    """Book until STOP exists, then print the longest pause (s) and everything that is wrong."""
    for each in DjangoModelFactory.__subclasses__():
        # Other names than those of former customers.
        each.reset_sequence(int(time.time()), force=True)
    load = Load(InstalledService(port), CLIENTS, MAX_SECONDS)
    longest, count, since = 0.0, 0, time.monotonic()
    while not STOP.exists() and time.monotonic() < load.until:
        if load.count_acknowledged() > count:
            now = time.monotonic()
            longest = max(longest, now - since) if count else 0.0
            count, since = load.count_acknowledged(), now
            COUNT.write_text(str(count))
        time.sleep(POLL_SECONDS)
    load.stop()
    connections.close_all()
    sys.stdout.write(json.dumps([longest, load.end(settings.PAYMENT_LEASE_SECONDS)]))
