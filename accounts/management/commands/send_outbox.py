from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts import outbox
from accounts.outbox import OutboxMessage, OutboxState


class Command(BaseCommand):
    help = (
        "Send the mails that are due; one that fails is tried again after pauses of a minute to a"
        " day and given up after seven tries, which exits with 1 as a person must look; run it"
        " every minute."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, metavar="N", help="Try so many mails at most.")

    def handle(self, *args: Any, limit: int | None, **options: Any) -> None:
        if limit is not None and limit < 1:
            raise CommandError("--limit must be at least 1.", returncode=2)
        tried: list[OutboxState] = []
        for message in outbox.send_due_messages(clock=timezone.now, limit=limit):
            tried.append(OutboxState(message.state))
            self.stdout.write(f"{message}: {describe_message(message)}")
        sent, given_up = tried.count(OutboxState.SENT), tried.count(OutboxState.FAILED)
        waiting = OutboxMessage.objects.waiting().count()
        self.stdout.write(f"{sent} sent, {waiting} waiting, {given_up} given up")
        if given_up:
            raise CommandError(
                "Some mails were given up: see them in the back office, under Mails.",
                returncode=1,
            )


def describe_message(message: OutboxMessage) -> str:
    if message.state == OutboxState.WAITING:
        return f"next try at {message.next_attempt_at:%Y-%m-%d %H:%M} UTC; {message.last_error}"
    return " ".join(part for part in (message.state, message.last_error) if part)
