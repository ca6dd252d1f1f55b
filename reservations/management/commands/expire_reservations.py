from collections import Counter
from collections.abc import Iterator

from django.core.management.base import CommandError
from django.utils import timezone

from reservations.booking import expiry, reminders
from reservations.booking.expiry import ExpiryIncomplete
from reservations.management.command_line import format_count
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook.jobs import RegularJob

END_STATUSES = (Status.EXPIRED, Status.COMPLETED)


class Command(RegularJob):
    help = (
        "Expire drafts past their start and requests that were not answered in time, complete"
        " meetings that are over, and remind customers of meetings and of holds that are about to"
        " expire; run it every few minutes, exits with 1 if one of them failed."
    )

    def handle(self, **options: object) -> None:
        self.failed: ExpiryIncomplete | None = None
        counts: Counter[str] = Counter()
        for reservation in self._close_overdue():
            counts[reservation.status] += 1
            self.stdout.write(
                f"Reservation {reservation.pk} is {reservation.status}:"
                f" {confirmation.describe_booking(reservation)}"
            )
        for reservation in reminders.send_hold_reminders(now=timezone.now()):
            self.stdout.write(
                f"Reservation {reservation.pk} is about to lose its room: its customer is reminded"
            )
        for reservation in reminders.send_meeting_reminders(now=timezone.now()):
            self.stdout.write(f"Reservation {reservation.pk} begins soon: its customer is reminded")
        self.stdout.write(
            ", ".join(
                f"{format_count(counts[status], 'reservation')} {status}" for status in END_STATUSES
            )
        )
        if self.failed:
            raise CommandError(f"Not all could be processed: {self.failed}", returncode=1)

    def _close_overdue(self) -> Iterator[Reservation]:
        try:
            yield from expiry.close_overdue(now=timezone.now())
        except ExpiryIncomplete as error:
            # The error is reported at the end, so that the reminders are sent first.
            self.failed = error
