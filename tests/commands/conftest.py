"""What the tests of commands share."""

from io import StringIO
from types import SimpleNamespace

import pytest
import time_machine
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone

from tests.conftest import restart_ids
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


@pytest.fixture(scope="module")
def seed(django_db_setup, django_db_blocker, tmp_path_factory):
    """Run `seed_demo` in a new database for a module, and delete the data after it.

    Committed, because the gateway is never called inside a transaction; each test's own changes are
    rolled back to it.
    """
    media = tmp_path_factory.mktemp("media")
    quick = ["django.contrib.auth.hashers.MD5PasswordHasher"]

    def seed(**options):
        out = StringIO()
        call_command("flush", interactive=False, verbosity=0)
        restart_ids()
        with override_settings(DEBUG=True, MEDIA_ROOT=media, PASSWORD_HASHERS=quick):
            call_command("seed_demo", stdout=out, **options)
        return SimpleNamespace(now=timezone.now(), output=out.getvalue())

    with django_db_blocker.unblock():
        yield seed
        call_command("flush", interactive=False, verbosity=0)
