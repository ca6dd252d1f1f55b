import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from roombook.backoffice.models import AuditEntry


class Command(BaseCommand):
    help = "Delete entries of the audit log that are older than a date."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--before-date",
            type=dt.date.fromisoformat,
            required=True,
            metavar="DATE",
            help="Delete entries before this date (ISO 8601, UTC).",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say how many entries would be deleted."
        )

    def handle(self, *args: Any, before_date: dt.date, dry_run: bool, **options: Any) -> None:
        entries = AuditEntry.objects.filter(timestamp__date__lt=before_date)
        if dry_run:
            self.stdout.write(f"{entries.count()} entries would be deleted.")
            return
        count, _ = entries.delete()
        self.stdout.write(f"Deleted {count} entries.")
