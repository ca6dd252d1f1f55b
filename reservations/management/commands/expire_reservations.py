from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from reservations.booking import approval
from reservations.booking.approval import ExpiryIncomplete
from reservations.management.shell import format_count
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import confirmation, reminders

ENDS = (Status.EXPIRED, Status.COMPLETED)


class Command(BaseCommand):
    help = (
        "Do what time asks for: drafts past their start and requests not answered in time become"
        " Expired, meetings that are over become Completed, and customers are told of holds about"
        " to lapse; run it every few minutes, exits 1 when one of them failed."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.failed: ExpiryIncomplete | None = None
        ended: Counter[str] = Counter()
        for reservation in self._expired():
            ended[reservation.status] += 1
            self.stdout.write(
                f"Reservation {reservation.pk} is {reservation.status}:"
                f" {confirmation.describe_booking(reservation)}"
            )
        for reservation in reminders.send_hold_reminders(now=timezone.now()):
            self.stdout.write(
                f"Reservation {reservation.pk} is about to lose its room: its customer is told"
            )
        self.stdout.write(
            ", ".join(f"{format_count(ended[status], 'reservation')} {status}" for status in ENDS)
        )
        if self.failed:
            raise CommandError(f"Could not be dealt with: {self.failed}", returncode=1)

    def _expired(self) -> Iterator[Reservation]:
        try:
            yield from approval.close_overdue(now=timezone.now())
        except ExpiryIncomplete as failed:
            # Told at the end: the reminders do not wait for it.
            self.failed = failed
