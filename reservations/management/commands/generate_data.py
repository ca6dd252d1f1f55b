import datetime as dt
from argparse import ArgumentParser
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, OperationalError, ProgrammingError
from django.utils import timezone

from reservations.generate import maker
from reservations.generate.people import PASSWORD, administrator_of
from reservations.management.shell import parse_date, parse_id


class Command(BaseCommand):
    help = (
        "Fill an empty database with made-up centers, accounts and reservations by the thousand, to"
        " measure with; the same seed and day make the same data. All of it or nothing. For"
        " development only: the accounts' password and Tokens are known to everybody."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--centers", type=parse_id, default=1000, metavar="N")
        parser.add_argument("--reservations", type=parse_id, default=10_000, metavar="M")
        parser.add_argument("--seed", type=parse_id, default=1, metavar="S")
        parser.add_argument(
            "--today",
            type=parse_date,
            metavar="DAY",
            help="What lies before it is past, such as 2027-03-01. Default: today.",
        )
        parser.add_argument(
            "--into-non-empty",
            action="store_true",
            help="Also where there are accounts or centers already; the service has to wait.",
        )
        parser.add_argument("--force", action="store_true", help="Also with DEBUG off.")

    def handle(
        self,
        *,
        centers: int = 1000,
        reservations: int = 10_000,
        seed: int = 1,
        today: dt.date | None = None,
        into_non_empty: bool = False,
        force: bool = False,
        **options: Any,
    ) -> None:
        if not (settings.DEBUG or force):
            raise CommandError(
                "DEBUG is off, and everybody knows the made-up accounts' password and Tokens."
                " If this is no real service, add --force."
            )
        began = perf_counter()

        def tell(line: str) -> None:
            self.stdout.write(f"[{perf_counter() - began:5.0f} s] {line}")
            self.stdout.flush()

        try:
            if not (into_non_empty or maker.is_empty()):
                raise CommandError(
                    "This database has accounts or centers already. If the made-up ones may stand"
                    " among them, add --into-non-empty."
                )
            rows = maker.make(
                centers=centers,
                reservations=reservations,
                seed=seed,
                today=today or timezone.now().date(),
                tell=tell,
            )
        except IntegrityError as error:
            raise CommandError(
                f"Nothing was made. This seed was used here already: {str(error).strip()}"
            ) from error
        except (OperationalError, ProgrammingError) as error:
            raise CommandError(
                f"The database refused: {str(error).strip()}. Nothing was made. Is it migrated, and"
                " is nothing else at work in it?"
            ) from error
        tell(
            f"{rows:,} rows are made. Everybody's password is {PASSWORD};"
            f" the administrator is {administrator_of(seed)}."
        )
