"""What the tests of commands share."""

from io import StringIO

import pytest
import time_machine
from django.core.management import call_command

from tests.factories_reservations import MINUTE, NOW


@pytest.fixture
def run():
    """Run a command and return what it printed."""

    def run(name, *words, **options):
        out = StringIO()
        call_command(name, *map(str, words), stdout=out, **options)
        return out.getvalue()

    return run


@pytest.fixture
def reconcile(run):
    """Run `reconcile_payments` five minutes after NOW, or at another time."""

    def reconcile(*words, at=NOW + 5 * MINUTE):
        with time_machine.travel(at, tick=False):
            return run("reconcile_payments", *words)

    return reconcile
