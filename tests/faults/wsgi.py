"""The WSGI application of the service under test: the real one, with the faults of the tests.

FAULTS_FOLDER          the folder with the files that control crashes and pauses
GATEWAY_FAULTS         the folder with the faults of the gateway
FAULTS_LEASE_SECONDS   a lease that is too short for a real gateway
FAULTS_UNGUARDED       without locks, for the negative controls
"""

import os
from pathlib import Path

from django.conf import settings

from roombook.wsgi import application
from tests import gateway_faults
from tests.faults import points, unguarded

__all__ = ["application"]

gateway_faults.install()
points.install(Path(os.environ["FAULTS_FOLDER"]))
if lease := os.environ.get("FAULTS_LEASE_SECONDS"):
    settings.PAYMENT_LEASE_SECONDS = int(lease)
if "FAULTS_UNGUARDED" in os.environ:
    unguarded.disable_locks()
