"""The WSGI application of the service under test: the real one, with the faults of the tests.

GATEWAY_FAULTS         the folder with the faults of the gateway
FAULTS_LEASE_SECONDS   a lease that is too short for a real gateway
FAULTS_UNGUARDED       without locks, for the negative controls
"""

import os

from django.conf import settings

from roombook.wsgi import application
from tests import gateway_faults
from tests.faults import unguarded

__all__ = ["application"]

gateway_faults.install()
if lease := os.environ.get("FAULTS_LEASE_SECONDS"):
    settings.PAYMENT_LEASE_SECONDS = int(lease)
if "FAULTS_UNGUARDED" in os.environ:
    unguarded.disable_locks()
