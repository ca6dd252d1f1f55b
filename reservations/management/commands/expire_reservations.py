from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from reservations import approval, confirmation, reminders
from reservations.management.shell import counted
from reservations.status import Status

ENDS = (Status.EXPIRED, Status.COMPLETED)


class Command(BaseCommand):
    help = (
        "Do what time asks for: drafts whose start has passed and requests that nobody answered in"
        " time become Expired, meetings that are over become Completed, and customers are told"
        " when the hold of a draft made for them is about to lapse; run it every few minutes."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        ended: Counter[str] = Counter()
        for reservation in approval.expire(now=timezone.now()):
            ended[reservation.status] += 1
            self.stdout.write(
                f"Reservation {reservation.pk} is {reservation.status}:"
                f" {confirmation.what(reservation)}"
            )
        for reservation in reminders.remind(now=timezone.now()):
            self.stdout.write(
                f"Reservation {reservation.pk} is about to lose its room: its customer is told"
            )
        self.stdout.write(
            ", ".join(f"{counted(ended[status], 'reservation')} {status}" for status in ENDS)
        )
