"""Prints the ledger of a reservation, now or at an earlier time."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from payments.models import LedgerLine
from payments.statements import describe_accounts, summarize
from roombook import money


class Command(BaseCommand):
    help = "Print what the ledger says of a reservation, now or at an earlier time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reservation", type=int, required=True)
        parser.add_argument(
            "--at", type=datetime.fromisoformat, help="A time, such as 2027-03-01T16:00+00:00"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        at = options["at"] or timezone.now()
        if timezone.is_naive(at):
            at = timezone.make_aware(at)
        lines = LedgerLine.objects.filter(reservation=options["reservation"], at__lte=at)
        lines = lines.select_related("center").order_by("at", "pk")
        summarized = list(summarize(lines))
        if not summarized:
            raise CommandError("The ledger has no line of this reservation at that time.")
        for line, _ in summarized:
            self.stdout.write(
                f"{line.at:%Y-%m-%d %H:%M}  {line.center}  {line.get_kind_display()}:"
                f" {describe_accounts(line)}"
            )
        _, found = summarized[-1]
        for name, amount in (("Bill", found.bill), ("Paid", found.paid), ("Owed", found.owed)):
            self.stdout.write(f"{name}: {money.format_amount(amount, lines[0].currency)}")
