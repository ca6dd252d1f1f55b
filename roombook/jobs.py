"""Commands that run regularly, and store in the database when they last ended (docs/metrics.md)."""

import datetime as dt

from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.utils import timezone

from roombook.models import JobRun

# How often the timers in deploy/systemd start each command.
JOB_INTERVALS = {
    "reconcile_payments": dt.timedelta(minutes=1),
    "send_outbox": dt.timedelta(minutes=1),
    "send_webhooks": dt.timedelta(minutes=1),
    "expire_reservations": dt.timedelta(minutes=5),
    "prune_tokens": dt.timedelta(hours=1),
    "erase_expired": dt.timedelta(hours=1),
    "verify_integrity": dt.timedelta(days=1),
    "clearsessions": dt.timedelta(days=1),
}


class RegularJob(BaseCommand):
    """A command of `JOB_INTERVALS`.

    A CommandError means that it did its work, and that something needs attention.
    """

    def execute(self, *args: object, **options: object) -> str | None:
        try:
            output = super().execute(*args, **options)
        except SystemCheckError:
            raise  # It did not run at all.
        except CommandError:
            self._record(has_succeeded=False)
            raise
        if not options.get("dry_run"):
            self._record(has_succeeded=True)
        return output

    def _record(self, *, has_succeeded: bool) -> None:
        command = type(self).__module__.rpartition(".")[2]
        now = timezone.now()  # noqa: TID251 (a command reads the clock)
        JobRun.objects.record(command, now=now, has_succeeded=has_succeeded)
