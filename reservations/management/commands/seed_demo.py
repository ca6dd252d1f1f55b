from argparse import ArgumentParser
from time import perf_counter

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError
from django.utils import timezone

from centers.models import Center
from payments import gateways
from reservations.demo import accounts, loader
from reservations.management.command_line import domain_errors_as_command_errors


class Command(BaseCommand):
    help = (
        "Fill an empty database with demo centers, accounts and reservations, the same every time;"
        " refuses with DEBUG off unless forced, and if there is real data."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--force",
            action="store_true",
            help="Also with DEBUG off, although everybody knows the accounts' password.",
        )
        parser.add_argument(
            "--if-empty",
            action="store_true",
            help="Do nothing, without an error, if there are accounts or centers already.",
        )

        parser.add_argument(
            "--small",
            action="store_true",
            help="Only a dozen reservations, which have the same ids on any day.",
        )

    def handle(
        self, *, force: bool = False, if_empty: bool = False, small: bool = False, **options: object
    ) -> None:
        if if_empty and not loader.is_empty():
            self.stdout.write("No demo data made: the database is not empty.")
            return
        if not (settings.DEBUG or force):
            raise CommandError(
                "DEBUG is off, and demo accounts have a password that everybody knows."
                " If this is no real service, add --force."
            )
        if gateways.get_current_gateway().name != "sandbox":
            raise CommandError("Demo bookings are paid for in the sandbox: PAYMENT_GATEWAY=sandbox")
        began = perf_counter()
        try:
            with domain_errors_as_command_errors():
                is_new = loader.load(
                    now=timezone.now(), write_line=self.stdout.write, is_small=small
                )
        except loader.ForeignData as error:
            raise CommandError(
                f"This database has real data: {error}. Demo data goes only into an empty one."
            ) from error
        except (OperationalError, ProgrammingError) as error:
            raise CommandError(
                f"The database refused: {str(error).strip()}. Is it migrated, and is no other"
                " seed_demo at work? Then run this again."
            ) from error
        if not is_new:
            self.stdout.write("The demo data is already there; nothing was changed.")
            return
        centers = Center.objects.count()
        self.stdout.write(
            f"The demo is ready after {perf_counter() - began:.1f} seconds: {centers} centers,"
            f" and the accounts {', '.join(accounts.EMAILS)} (password {accounts.PASSWORD})."
        )
