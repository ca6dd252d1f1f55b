"""The command that deletes old entries of the audit log."""

import datetime as dt

import pytest
from django.core.management import call_command

from roombook.backoffice.models import AuditEntry
from tests.factories_centers import CenterFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def dates():
    """The audit log has an entry of each of these days."""
    CenterFactory()
    entry = AuditEntry.objects.first()
    days = [dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC) for day in (1, 2, 3)]
    AuditEntry.objects.all().delete()
    for day in days:
        entry.pk, entry.timestamp = None, day
        entry.save()
    return days


def test_prune_audit_log_deletes_entries_before_the_date_only(dates, capsys):
    call_command("prune_audit_log", "--before-date", "2026-01-02")

    assert capsys.readouterr().out == "Deleted 1 entries.\n"
    assert [*AuditEntry.objects.order_by("pk").values_list("timestamp", flat=True)] == dates[1:]


def test_prune_audit_log_dry_run_deletes_nothing(dates, capsys):
    call_command("prune_audit_log", "--before-date", "2026-01-03", "--dry-run")

    assert capsys.readouterr().out == "2 entries would be deleted.\n"
    assert AuditEntry.objects.count() == 3
