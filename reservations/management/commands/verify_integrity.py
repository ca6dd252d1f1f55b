from django.core.management.base import CommandError
from django.utils import timezone

from reservations.booking import integrity
from roombook.jobs import RegularJob


class Command(RegularJob):
    help = (
        "Check the data for contradictions: no room is held twice, totals equal their lines and"
        " what was paid, promo uses and allowance hours equal their ledgers. Changes nothing."
        " Prints nothing and exits with 0 if all is well, else exits with 1 and the findings."
    )

    def handle(self, **options: object) -> None:
        found = 0
        for finding in integrity.find_problems(now=timezone.now()):
            found += 1
            self.stdout.write(str(finding))
        if found:
            raise CommandError(f"{found} findings.", returncode=1)
