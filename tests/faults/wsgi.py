"""The service as gunicorn starts it here: the real one, with what a test switches on.

FAULTS_FOLDER         where crash points, pauses and the clock are set while it runs
FAULTS_LEASE_SECONDS  a lease too short for any real gateway
FAULTS_UNGUARDED      the guards off, to see that the tests would notice
"""

import os
from pathlib import Path

from django.conf import settings

from roombook.wsgi import application
from tests.faults import points, unguarded

__all__ = ["application"]

points.install(Path(os.environ["FAULTS_FOLDER"]))
if lease := os.environ.get("FAULTS_LEASE_SECONDS"):
    settings.PAYMENT_LEASE_SECONDS = int(lease)
if os.environ.get("FAULTS_UNGUARDED"):
    unguarded.disable_locks()
