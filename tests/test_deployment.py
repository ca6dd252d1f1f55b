"""The files in deploy/ that are not code."""

import re
from pathlib import Path

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command, get_commands

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
README = (DEPLOY / "README.md").read_text()


def test_cron_and_compose_run_the_same_commands():
    in_cron = re.findall(r"^    \S+ \S+ \* \* \* .* manage\.py (\w+)$", README, re.M)
    in_compose = re.findall(
        r"python manage\.py (\w+)$", (DEPLOY / "compose.yaml").read_text(), re.M
    )

    assert in_cron == in_compose
    assert set(in_cron) <= set(get_commands())
    assert "clearsessions" in in_cron


@pytest.mark.django_db
def test_scheduled_commands_delete_expired_sessions():
    for seconds in (-1, 3600):
        session = SessionStore()
        session.set_expiry(seconds)
        session.save()

    call_command("clearsessions")

    assert [each.session_key for each in Session.objects.all()] == [session.session_key]
