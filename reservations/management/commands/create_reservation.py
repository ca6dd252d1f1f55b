from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.act import Act
from accounts.models import User, canonicalize_email
from reservations.booking import drafts
from reservations.management.command_line import (
    add_booking_arguments,
    domain_errors_as_command_errors,
    read_booking,
    render_bill,
)


class Command(BaseCommand):
    help = "Create a draft for a customer and print its bill, by the same rules as the API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, metavar="EMAIL", help="The customer.")
        add_booking_arguments(parser)
        parser.add_argument("--attendees", type=int, metavar="N", help="Default: 1.")

    def handle(self, **options: Any) -> None:
        now, email = timezone.now(), canonicalize_email(options["user"])
        if (customer := User.objects.filter(email=email, is_active=True).first()) is None:
            raise CommandError("There is no such account, or it is disabled.")
        room, span = read_booking(options, now=now)
        with domain_errors_as_command_errors():
            reservation = drafts.create_draft(
                Act(customer, now),
                customer,
                room_id=room.pk,
                start=span.start,
                end=span.end,
                services=options["service"],
                number_of_attendees=options["attendees"],
            )
        self.stdout.write(f"{reservation} holds its room until {reservation.hold_until}.")
        lines = reservation.line_items.order_by("position")
        self.stdout.write(render_bill(lines, reservation.total_cost))
