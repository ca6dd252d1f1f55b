from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts import second_factor
from accounts.models import User, canonicalize_email


class Command(BaseCommand):
    help = (
        "Turn off two-step sign-in of a member of staff who lost the phone; for the only"
        " administrator, because administrators do this in the back office."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")

    def handle(self, *args: object, email: str, **options: object) -> None:
        user = User.objects.filter(email=canonicalize_email(email)).first()
        if user is None:
            raise CommandError("There is no account with this e-mail address.", returncode=2)
        if user.second_factor_since is None:
            self.stdout.write("Two-step sign-in was not on.")
            return
        second_factor.turn_off(user, by=None, now=timezone.now())
        self.stdout.write("Two-step sign-in is off. The owner gets an e-mail.")
