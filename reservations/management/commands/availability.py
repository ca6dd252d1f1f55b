from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from reservations import availability
from reservations.management.command_line import add_booking_arguments, read_booking


class Command(BaseCommand):
    help = "Show whether a room is available at a time, by default its next free hour, and why not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_booking_arguments(parser)

    def handle(self, **options: Any) -> None:
        now = timezone.now()
        room, span = read_booking(options, now=now)
        zone = room.center.zone
        self.stdout.write(f"{room}, {span.start.astimezone(zone)} - {span.end.astimezone(zone)}")
        reasons = availability.evaluate(room, span, now=now).reasons
        for line in [f"{each.code}: {each.detail}" for each in reasons] or ["available"]:
            self.stdout.write(f"  {line}")
