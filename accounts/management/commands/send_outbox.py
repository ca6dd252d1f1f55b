from argparse import ArgumentParser

from django.core.management.base import CommandError
from django.utils import timezone

from accounts import outbox
from accounts.models import OutboxMessage
from roombook.deliveries import DeliveryState
from roombook.jobs import RegularJob


class Command(RegularJob):
    help = (
        "Send the e-mails that are due; a failed one is retried after delays of a minute to a day,"
        " and after seven attempts the command exits with 1, because staff must look at it; run it"
        " every minute."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, metavar="N", help="Try at most this many e-mails.")

    def handle(self, *args: object, limit: int | None, **options: object) -> None:
        if limit is not None and limit < 1:
            raise CommandError("--limit must be at least 1.", returncode=2)
        states: list[DeliveryState] = []
        for message in outbox.send_due_messages(clock=timezone.now, limit=limit):
            states.append(DeliveryState(message.state))
            self.stdout.write(f"{message}: {describe_message(message)}")
        sent, failed = states.count(DeliveryState.SENT), states.count(DeliveryState.FAILED)
        waiting = OutboxMessage.objects.waiting().count()
        self.stdout.write(f"{sent} sent, {waiting} waiting, {failed} failed")
        if failed:
            raise CommandError(
                "Some e-mails failed: see them in the back office, under E-mails.",
                returncode=1,
            )


def describe_message(message: OutboxMessage) -> str:
    if message.state == DeliveryState.WAITING:
        return f"next try at {message.next_attempt_at:%Y-%m-%d %H:%M} UTC; {message.last_error}"
    return " ".join(part for part in (message.state, message.last_error) if part)
