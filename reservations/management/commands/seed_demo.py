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
        " refuses with DEBUG off unless forced, and if there are accounts or centers."
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
        if accounts.are_closed():
            raise CommandError(
                "The demo is not whole: an earlier seed_demo was interrupted, or still runs. Delete"
                " the database, migrate a new one, and run this again."
            )
        is_empty = loader.is_empty()
        if if_empty and not is_empty:
            self.stdout.write("No demo data made: the database is not empty.")
            return
        if not is_empty:
            raise CommandError("The database is not empty. Demo data goes only into a new one.")
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
                loader.load(now=timezone.now(), write_line=self.stdout.write, is_small=small)
        except (OperationalError, ProgrammingError) as error:
            raise CommandError(
                f"The database refused: {str(error).strip()}. Is it migrated? Then run this again"
                " with a new one."
            ) from error
        centers = Center.objects.count()
        self.stdout.write(
            f"The demo is ready after {perf_counter() - began:.1f} seconds: {centers} centers,"
            f" and the accounts {', '.join(accounts.EMAILS)} (password {accounts.PASSWORD})."
        )
