from argparse import ArgumentParser

from django.utils import timezone

from accounts import limits
from accounts.models import ApiToken, EmailCode
from roombook.jobs import RegularJob
from roombook.models import SavedResponse


class Command(RegularJob):
    help = (
        "Delete expired tokens, codes, attempt windows and responses saved by Idempotency-Key; "
        "run it every hour."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say how many tokens would be deleted."
        )

    def handle(self, *args: object, dry_run: bool, **options: object) -> None:
        now = timezone.now()
        expired = ApiToken.objects.expired(now)
        if dry_run:
            self.stdout.write(f"{expired.count()} expired tokens would be deleted.")
            return
        tokens, _ = expired.delete()
        codes, _ = EmailCode.objects.expired(now).delete()
        windows = limits.delete_expired_windows(now=now)
        responses, _ = SavedResponse.objects.expired(now).delete()
        self.stdout.write(
            f"Deleted {tokens} tokens, {codes} codes, {windows} attempt windows and "
            f"{responses} responses, all expired."
        )
