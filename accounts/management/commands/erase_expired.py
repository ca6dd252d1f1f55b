from django.core.management.base import CommandError
from django.utils import timezone

from accounts import erasure
from accounts.personal_data import erase_expired_rows
from roombook.jobs import RegularJob


class Command(RegularJob):
    help = (
        "Delete expired sessions, Tokens, codes and saved responses, and personal data older"
        " than its setting, and finish the erasures of accounts;"
        " run it every hour, exits with 1 if an erasure is unfinished for a day, or if"
        " a table could not be cleared."
    )

    def handle(self, **options: object) -> None:
        now = timezone.now()
        overdue = erasure.finish_erasures(now=now)
        counts, failed = erase_expired_rows(now=now)
        erased = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        self.stdout.write(f"Erased: {erased or 'nothing'}.")
        if unfinished := [*map(str, overdue), *failed]:
            raise CommandError(
                f"Not finished: {', '.join(unfinished)}. The log says why.", returncode=1
            )
