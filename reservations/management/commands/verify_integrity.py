"""Checks the books against each other."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from reservations.booking import integrity


class Command(BaseCommand):
    help = (
        "Check the books: no room held twice, totals equal to their lines and to what was paid,"
        " promo uses and allowance hours equal to their ledgers. Changes nothing; silent, with exit"
        " status 0, when all is well; else prints each finding with its rows and exits with 1."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        found = 0
        for finding in integrity.find_problems(now=timezone.now()):
            found += 1
            self.stdout.write(str(finding))
        if found:
            raise CommandError(f"{found} findings.", returncode=1)
